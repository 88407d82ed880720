#include "litert.h"

#include "../elementwise/loops.h"
#include "../qwide/walk.h"

#define BT_RESCALE(symbol, X, Y, lo, hi)                                                                      \
    BT_KERNEL void symbol(const bt_rescale *p, const X *x, Y *y)                                              \
    {                                                                                                         \
        for (int32_t i = 0; i < p->count; i++) {                                                              \
            const int32_t v = (int32_t)((uint32_t)x[i] - (uint32_t)p->x_zero);                                \
            const int64_t scaled = (int64_t)bt_scaled(v, p->multiplier, p->shift) + p->zero;                  \
            y[i] = (Y)(scaled < lo ? lo : scaled > hi ? hi : scaled);                                         \
        }                                                                                                     \
    }

BT_RESCALE(bt_rescale_s8_s16_ref, int8_t, int16_t, INT16_MIN, INT16_MAX)
BT_RESCALE(bt_rescale_s8_s32_ref, int8_t, int32_t, INT32_MIN, INT32_MAX)
BT_RESCALE(bt_rescale_s16_s8_ref, int16_t, int8_t, INT8_MIN, INT8_MAX)
BT_RESCALE(bt_rescale_s16_s16_ref, int16_t, int16_t, INT16_MIN, INT16_MAX)
BT_RESCALE(bt_rescale_s16_s32_ref, int16_t, int32_t, INT32_MIN, INT32_MAX)
BT_RESCALE(bt_rescale_s32_s8_ref, int32_t, int8_t, INT8_MIN, INT8_MAX)
BT_RESCALE(bt_rescale_s32_s16_ref, int32_t, int16_t, INT16_MIN, INT16_MAX)
BT_RESCALE(bt_rescale_s32_s32_ref, int32_t, int32_t, INT32_MIN, INT32_MAX)

#undef BT_RESCALE

BT_BINARY_REF(bt_litert_add16_ref, bt_litert_add16, int16_t, int16_t, bt_litert_add16_one(p, v, w))
BT_BINARY_REF(bt_litert_mul16_ref, bt_litert_mul16, int16_t, int16_t, bt_litert_mul16_one(p, v, w))

BT_KERNEL void bt_litert_leaky_relu16_ref(const bt_litert_leaky_relu16 *p, const int16_t *x, int16_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t scaled = x[i] < 0 ? bt_scaled_signed(x[i], p->alpha_multiplier, p->alpha_shift)
                                        : bt_scaled(x[i], p->multiplier, p->shift);
        y[i] = (int16_t)bt_clamp_i32(scaled, -32768, 32767);
    }
}

BT_KERNEL void bt_litert_curve16_ref(const bt_litert_curve16 *p, const int16_t *x, const BT_FLASH int16_t *table,
                                     int16_t *y)
{
    const int32_t half = (INT32_C(1) << p->shift) >> 1;
    const int32_t bits = p->tanh ? 8 : 9; /* between two points; tanh(x) is 2 sigmoid(2x) - 1 */
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t v = (x[i] * p->multiplier + half) >> p->shift, size = v < 0 ? -v : v;
        const int32_t point = size >> bits;
        int32_t up = (p->tanh ? INT32_C(0xffff) : INT32_C(0xfffe)) << bits;
        if (point < 255) {
            const int32_t from = (uint16_t)table[point], to = (uint16_t)table[point + 1];
            up = (from << bits) + (size & ((1 << bits) - 1)) * (to - from);
        }
        if (p->tanh)
            y[i] = (int16_t)((v < 0 ? (INT32_C(1) << 23) - up + 127 : up - (INT32_C(1) << 23) + 128) >> 8);
        else
            y[i] = (int16_t)((v < 0 ? (INT32_C(1) << 25) - up + 511 : up + 512) >> 10);
    }
}

BT_INLINE void bt_litert_mean16(const bt_qmax_pool2d *p, const bt_qwindow16 *w, int16_t *y)
{
    const int32_t count = w->rows * w->columns;
    for (int32_t c = 0; c < p->channels; c++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < w->rows; i++)
            for (int32_t j = 0; j < w->columns; j++)
                sum += w->x[i * w->row_step + j * w->pitch + c];
        y[c] = (int16_t)((sum > 0 ? sum + count / 2 : sum - count / 2) / count);
    }
}

BT_QPOOL16(bt_litert_avg_pool16_ref, bt_qmax_pool2d, bt_litert_mean16)

/* a * b * 2 / 2^32, half up */
BT_INLINE int32_t bt_product_q31(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

/* 2^31 / (1 + d / 2^31), in three steps of Newton's from 48/17 - 32/17 (1 + d) / 2 on. */
BT_INLINE int32_t bt_reciprocal_q31(int32_t d)
{
    const int32_t half = (int32_t)(((int64_t)d + INT32_MAX + 1) / 2);
    int32_t x = 1515870810 + bt_product_q31(half, -1010580540);
    for (int32_t k = 0; k < 3; k++)
        x += bt_product_q31(x, (INT32_C(1) << 29) - bt_product_q31(half, x)) * 4;
    return x > INT32_MAX / 2 ? INT32_MAX : x * 2;
}

/* The number of the highest bit, which there is. */
BT_INLINE int32_t bt_highest_bit(uint32_t v)
{
    int32_t bit = 31;
    for (; !(v & UINT32_C(0x80000000)); v <<= 1)
        bit--;
    return bit;
}

BT_KERNEL void bt_litert_softmax8_ref(const bt_litert_softmax *p, const int8_t *x, const BT_FLASH int32_t *table,
                                      int16_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        int32_t max = x[0], sum = 0;
        for (int32_t i = 1; i < p->length; i++)
            max = x[i] > max ? x[i] : max;
        for (int32_t i = 0; i < p->length; i++)
            sum += bt_divided(table[max - x[i]], 12);
        const int32_t room = 31 - bt_highest_bit((uint32_t)sum);
        const int32_t inverse = bt_reciprocal_q31((int32_t)(((uint32_t)sum << room) - (UINT32_C(1) << 31)));
        for (int32_t i = 0; i < p->length; i++) {
            const int32_t share = bt_divided(bt_product_q31(inverse, table[max - x[i]]), 27 - room);
            y[i] = (int16_t)bt_clamp_i32(share - 32768, -32768, 32767);
        }
    }
}

/* Between two of 513 points. */
BT_INLINE int32_t bt_between_points(const BT_FLASH int16_t *points, int32_t v)
{
    const int32_t from = points[256 + (v >> 7)], to = points[257 + (v >> 7)];
    return from + (((to - from) * (v & 127) + 64) >> 7);
}

BT_KERNEL void bt_litert_softmax16_ref(const bt_litert_softmax *p, const int16_t *x, const BT_FLASH int16_t *table,
                                       int16_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        int32_t max = x[0], sum = 0;
        for (int32_t i = 1; i < p->length; i++)
            max = x[i] > max ? x[i] : max;
        for (int32_t i = 0; i < p->length; i++) {
            const int32_t d = bt_scaled(x[i] - max, p->multiplier, p->shift);
            y[i] = (int16_t)bt_between_points(table, bt_clamp_i32(d, -65535, 0) + 32767);
            sum += y[i];
        }
        const int32_t bits = bt_highest_bit((uint32_t)sum);
        const int32_t above = (int32_t)(((((int64_t)sum << (30 - bits)) + (1 << 13)) >> 14) - (INT32_C(1) << 16));
        const int32_t inverse = bt_between_points(table + 513, bt_clamp_i32(above - (INT32_C(1) << 15), -32768, 32767));
        for (int32_t i = 0; i < p->length; i++) {
            const int64_t share = ((int64_t)y[i] * inverse + (INT64_C(1) << (bits - 1))) >> bits;
            y[i] = (int16_t)bt_clamp_i32((int32_t)share, 0, 32767);
        }
    }
}

/* Sums keep the lower 32 bits, as LiteRT's. */
#define BT_SVDF(symbol, S, lowest, highest)                                                                           \
    BT_KERNEL void symbol(const bt_litert_svdf *p, const int8_t *x, const S *state, const BT_FLASH int8_t *features,  \
                          const BT_FLASH int32_t *feature_bias, const BT_FLASH S *times, const BT_FLASH int32_t *bias, \
                          int8_t *y, S *next)                                                                         \
    {                                                                                                                 \
        for (int32_t b = 0; b < p->batch; b++, x += p->in) {                                                          \
            const BT_FLASH int8_t *feature = features;                                                                \
            const BT_FLASH S *time = times;                                                                           \
            uint32_t sum = 0;                                                                                         \
            for (int32_t f = 0; f < p->filters; f++, state += p->memory, next += p->memory) {                         \
                int32_t newest = feature_bias[f];                                                                     \
                for (int32_t i = 0; i < p->in; i++)                                                                   \
                    newest += *feature++ * x[i];                                                                      \
                newest = bt_scaled(newest, p->state_multiplier, p->state_shift) + p->state_zero;                      \
                if (f % p->rank == 0)                                                                                 \
                    sum = (uint32_t)bias[f / p->rank];                                                                \
                for (int32_t m = 0; m < p->memory; m++) {                                                             \
                    next[m] = m + 1 < p->memory ? state[m + 1] : (S)bt_clamp_i32(newest, lowest, highest);            \
                    sum += (uint32_t)((int32_t)*time++ * next[m]);                                                    \
                }                                                                                                     \
                if (f % p->rank == p->rank - 1) {                                                                     \
                    const int32_t scaled = bt_scaled((int32_t)sum, p->multiplier, p->shift);                          \
                    *y++ = (int8_t)bt_clamp_i32(scaled + p->zero, -128, 127);                                         \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
    }

BT_SVDF(bt_litert_svdf8_ref, int8_t, -128, 127)
BT_SVDF(bt_litert_svdf16_ref, int16_t, -32768, 32767)

#undef BT_SVDF
