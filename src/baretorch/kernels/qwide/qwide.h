/* Sums, pools and softmax of int16, whose zero points are 0.
 *
 * qadd16: y = clamp((a * a_factor + b * b_factor + 2^(shift-1)) >> shift, lo, hi)
 * qmax_pool16, qavg_pool16: as those of qpool.h
 * qsoftmax16: with scale 1/32768; table has e^-256d, then e^-d, in the input's scale times 65535, taken as unsigned */
#ifndef BT_QWIDE_H
#define BT_QWIDE_H

#include "../qpool/qpool.h"

/* Factors have 15 bits with their sign, so that no sum leaves 32. */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_factor, b_factor;
    int32_t shift;
    int32_t lo, hi;
} bt_qadd16;

typedef struct {
    int32_t rows;
    int32_t length;
} bt_qsoftmax16;

BT_INLINE int16_t bt_qadd16_one(const bt_qadd16 *p, int32_t a, int32_t b)
{
    const int32_t sum = a * p->a_factor + b * p->b_factor + (INT32_C(1) << (p->shift - 1));
    return (int16_t)bt_clamp_i32(sum >> p->shift, p->lo, p->hi);
}

BT_INLINE int16_t bt_qavg16_one(const bt_qavg_pool2d *p, int32_t sum)
{
    return (int16_t)bt_clamp_i32(bt_scale(sum * (int32_t)(1 << p->shift), p->multiplier, 0), -32768, 32767);
}

/* e^-d in the input's scale, times 65535. */
BT_INLINE uint32_t bt_exp16(const BT_FLASH int16_t *table, int32_t d)
{
    return ((uint32_t)(uint16_t)table[d >> 8] * (uint16_t)table[256 + (d & 255)] + (UINT32_C(1) << 15)) >> 16;
}

/* The share of e in a sum, whose reciprocal is `inverse` / 2^32. */
BT_INLINE int16_t bt_share16(uint32_t e, uint32_t inverse)
{
    const uint32_t share = ((e * inverse >> 16) + 1) >> 1;
    return (int16_t)(share < 32767 ? share : 32767);
}

#ifndef BT_INLINE_KERNELS
void bt_qadd16_ref(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y);
void bt_qmax_pool16_ref(const bt_qmax_pool2d *p, const int16_t *x, int16_t *y);
void bt_qavg_pool16_ref(const bt_qavg_pool2d *p, const int16_t *x, int16_t *y);
void bt_qsoftmax16_ref(const bt_qsoftmax16 *p, const int16_t *x, const BT_FLASH int16_t *table, int16_t *y);

/* The innermost steps are 1 and 1. */
void bt_qadd16_dsp(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y);
void bt_qadd16_mve(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y);

/* Two channels at a time, so there are two or more. */
void bt_qmax_pool16_dsp(const bt_qmax_pool2d *p, const int16_t *x, int16_t *y);
void bt_qavg_pool16_dsp(const bt_qavg_pool2d *p, const int16_t *x, int16_t *y);

void bt_qsoftmax16_dsp(const bt_qsoftmax16 *p, const int16_t *x, const int16_t *table, int16_t *y);
void bt_qsoftmax16_mve(const bt_qsoftmax16 *p, const int16_t *x, const int16_t *table, int16_t *y);

void bt_qmax_pool16_mve(const bt_qmax_pool2d *p, const int16_t *x, int16_t *y);
void bt_qavg_pool16_mve(const bt_qavg_pool2d *p, const int16_t *x, int16_t *y);
#endif

#endif
