/* Two int8 inputs, element by element, over steps in elements; a step of 0 repeats the element (broadcasting).
 *
 * qadd: y = clamp((a * a_factor + b * b_factor + offset) >> shift, lo, hi)
 * qmul: y = requantize((a - a_zero) * (b - b_zero))
 * qdiv: y = clamp(zero + (((a - a_zero) * factor / (b - b_zero) + 2^(shift-1)) >> shift), lo, hi)
 * qsquared_difference: y = requantize(d * d), d = ((a - a_zero) * a_factor - (b - b_zero) * b_factor + 2^6) >> 7 */
#ifndef BT_QBINARY_H
#define BT_QBINARY_H

#include "../int8.h"

/* Factors fit into halfwords, and no sum leaves 32 bits. */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_factor, b_factor;
    int32_t offset;
    int32_t shift;
    int32_t lo, hi;
} bt_qadd;

typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_zero, b_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t zero;
    int32_t lo, hi;
} bt_qmul;

/* 255 * factor has 31 bits. */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_zero, b_zero;
    int32_t factor;
    int32_t shift;
    int32_t zero;
    int32_t lo, hi;
} bt_qdiv;

/* Factors are 2^13 at most, so that d has 16 bits and its square 31. */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_zero, b_zero;
    int32_t a_factor, b_factor;
    int32_t multiplier;
    int32_t zero;
    int32_t lo, hi;
} bt_qsquared_difference;

BT_INLINE int8_t bt_qadd_one(const bt_qadd *p, int32_t a, int32_t b)
{
    return (int8_t)bt_clamp_i32((a * p->a_factor + b * p->b_factor + p->offset) >> p->shift, p->lo, p->hi);
}

BT_INLINE int8_t bt_qmul_one(const bt_qmul *p, int32_t a, int32_t b)
{
    return bt_requantize((a - p->a_zero) * (b - p->b_zero), p->multiplier, p->shift, p->zero, p->lo, p->hi);
}

/* Division by 0 gives a limit; 0 / 0 is 0. */
BT_INLINE int8_t bt_qdiv_one(const bt_qdiv *p, int32_t a, int32_t b)
{
    const int32_t n = (a - p->a_zero) * p->factor, d = b - p->b_zero;
    if (d == 0)
        return (int8_t)(n > 0 ? p->hi : n < 0 ? p->lo : bt_clamp_i32(p->zero, p->lo, p->hi));
    return (int8_t)bt_clamp_i32(p->zero + ((n / d + (INT32_C(1) << (p->shift - 1))) >> p->shift), p->lo, p->hi);
}

BT_INLINE int8_t bt_qsquared_difference_one(const bt_qsquared_difference *p, int32_t a, int32_t b)
{
    const int32_t d = ((a - p->a_zero) * p->a_factor - (b - p->b_zero) * p->b_factor + 64) >> 7;
    return bt_requantize(d * d, p->multiplier, 0, p->zero, p->lo, p->hi);
}

#ifndef BT_INLINE_KERNELS
void bt_qadd_ref(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qmul_ref(const bt_qmul *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qdiv_ref(const bt_qdiv *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qsquared_difference_ref(const bt_qsquared_difference *p, const int8_t *a, const int8_t *b, int8_t *y);

/* The innermost steps are 1 and 1. */
void bt_qadd_dsp(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qmul_dsp(const bt_qmul *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qadd_mve(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qmul_mve(const bt_qmul *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qadd_xcv(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y);
#endif

#endif
