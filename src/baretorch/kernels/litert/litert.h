/* Operators in the arithmetic of LiteRT's reference kernels, number by number, with scaled(v, m, s) = v * m / 2^(31-s),
 * rounded half up, and once more, half away from zero, if s is negative.
 *
 * rescale:      y = clamp(scaled(x - x_zero) + zero)
 * add16:        y = clamp(scaled(scaled(a * 2^15) + scaled(b * 2^15)), lo, hi)
 * mul16:        y = clamp(scaled(a * b), lo, hi)
 * leaky_relu16: y = clamp(scaled(x)), with another factor below 0
 * curve16:      y = sigmoid or tanh of x * multiplier / 2^shift, along lines between table[i] = sigmoid(i / 24) * 2^16
 * avg_pool16:   y = the mean of the window without padding, half away from zero
 * softmax8:     y = softmax of int8, in steps of 2^-16 from -32768; table[d] = e^-d * 2^31 in the input's scale
 * softmax16:    y = softmax of int16, in steps of 2^-15; table has 513 points of e^(10 (i - 512) / 512), then of
 *               1 / (1 + i / 512)
 * svdf:         the newest state of a filter is scaled(features * x + feature_bias) + state_zero;
 *               y = clamp(scaled(times * state, over all times and the filters of a unit, + bias) + zero) */
#ifndef BT_LITERT_H
#define BT_LITERT_H

#include "../qpool/qpool.h"

typedef struct {
    int32_t count;
    int32_t x_zero;
    int32_t multiplier, shift;
    int32_t zero;
} bt_rescale;

typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t a_multiplier, a_shift;
    int32_t b_multiplier, b_shift; /* the multiplier is negative for a difference */
    int32_t multiplier, shift;
    int32_t lo, hi;
} bt_litert_add16;

typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t multiplier, shift;
    int32_t lo, hi;
} bt_litert_mul16;

typedef struct {
    int32_t count;
    int32_t multiplier, shift;
    int32_t alpha_multiplier, alpha_shift; /* the multiplier is negative if alpha is */
} bt_litert_leaky_relu16;

typedef struct {
    int32_t count;
    int32_t multiplier, shift; /* to the right */
    int32_t tanh;
} bt_litert_curve16;

typedef struct {
    int32_t rows;
    int32_t length;
    int32_t multiplier, shift; /* of softmax16 */
} bt_litert_softmax;

typedef struct {
    int32_t batch;
    int32_t in;
    int32_t filters;
    int32_t memory;
    int32_t rank; /* filters of a unit */
    int32_t state_multiplier, state_shift, state_zero;
    int32_t multiplier, shift, zero;
} bt_litert_svdf;

/* v / 2^bits, half away from zero */
BT_INLINE int32_t bt_divided(int32_t v, int32_t bits)
{
    const uint32_t mask = (UINT32_C(1) << bits) - 1, rest = (uint32_t)v & mask;
    return (v >> bits) + (rest > (mask >> 1) + (v < 0));
}

/* Shifts to the left may leave 32 bits, where LiteRT keeps the lower ones. */
BT_INLINE int32_t bt_scaled(int32_t v, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int64_t product = (int64_t)(int32_t)((uint32_t)v << left) * multiplier;
    return bt_divided((int32_t)((product + (INT64_C(1) << 30)) >> 31), left - shift);
}

/* The same with a multiplier whose sign is that of the result. */
BT_INLINE int32_t bt_scaled_signed(int32_t v, int32_t multiplier, int32_t shift)
{
    return multiplier < 0 ? -bt_scaled(v, -multiplier, shift) : bt_scaled(v, multiplier, shift);
}

BT_INLINE int16_t bt_litert_add16_one(const bt_litert_add16 *p, int32_t a, int32_t b)
{
    const int32_t sum = bt_scaled(a * INT32_C(32768), p->a_multiplier, p->a_shift) +
                        bt_scaled_signed(b * INT32_C(32768), p->b_multiplier, p->b_shift);
    return (int16_t)bt_clamp_i32(bt_scaled(sum, p->multiplier, p->shift), p->lo, p->hi);
}

BT_INLINE int16_t bt_litert_mul16_one(const bt_litert_mul16 *p, int32_t a, int32_t b)
{
    return (int16_t)bt_clamp_i32(bt_scaled(a * b, p->multiplier, p->shift), p->lo, p->hi);
}

#ifndef BT_INLINE_KERNELS
void bt_rescale_s8_s16_ref(const bt_rescale *p, const int8_t *x, int16_t *y);
void bt_rescale_s8_s32_ref(const bt_rescale *p, const int8_t *x, int32_t *y);
void bt_rescale_s16_s8_ref(const bt_rescale *p, const int16_t *x, int8_t *y);
void bt_rescale_s16_s16_ref(const bt_rescale *p, const int16_t *x, int16_t *y);
void bt_rescale_s16_s32_ref(const bt_rescale *p, const int16_t *x, int32_t *y);
void bt_rescale_s32_s8_ref(const bt_rescale *p, const int32_t *x, int8_t *y);
void bt_rescale_s32_s16_ref(const bt_rescale *p, const int32_t *x, int16_t *y);
void bt_rescale_s32_s32_ref(const bt_rescale *p, const int32_t *x, int32_t *y);
void bt_litert_add16_ref(const bt_litert_add16 *p, const int16_t *a, const int16_t *b, int16_t *y);
void bt_litert_mul16_ref(const bt_litert_mul16 *p, const int16_t *a, const int16_t *b, int16_t *y);
void bt_litert_leaky_relu16_ref(const bt_litert_leaky_relu16 *p, const int16_t *x, int16_t *y);
void bt_litert_curve16_ref(const bt_litert_curve16 *p, const int16_t *x, const BT_FLASH int16_t *table, int16_t *y);
void bt_litert_avg_pool16_ref(const bt_qmax_pool2d *p, const int16_t *x, int16_t *y);
void bt_litert_softmax8_ref(const bt_litert_softmax *p, const int8_t *x, const BT_FLASH int32_t *table, int16_t *y);
void bt_litert_softmax16_ref(const bt_litert_softmax *p, const int16_t *x, const BT_FLASH int16_t *table, int16_t *y);
/* `state` is that before, `next` that after: [batch][filters][memory], the newest last; they may be the same. */
void bt_litert_svdf8_ref(const bt_litert_svdf *p, const int8_t *x, const int8_t *state, const BT_FLASH int8_t *features,
                         const BT_FLASH int32_t *feature_bias, const BT_FLASH int8_t *times,
                         const BT_FLASH int32_t *bias, int8_t *y, int8_t *next);
void bt_litert_svdf16_ref(const bt_litert_svdf *p, const int8_t *x, const int16_t *state,
                          const BT_FLASH int8_t *features, const BT_FLASH int32_t *feature_bias,
                          const BT_FLASH int16_t *times, const BT_FLASH int32_t *bias, int8_t *y, int16_t *next);
#endif

#endif
