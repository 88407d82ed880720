/* The two layers, around a function that multiplies four rows of weights with a vector. */
#ifndef BT_QRECURRENT_LAYERS_H
#define BT_QRECURRENT_LAYERS_H

#include "qrecurrent.h"

/* sums[k] += row k of w [.][n] times x, for k below `count` and 4; gives where the next rows begin */
typedef const void *bt_four(int32_t sums[4], const int8_t *x, const void *w, int32_t count, int32_t n);

BT_INLINE int32_t bt_sat16(int32_t v)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    __asm__("ssat %0, #16, %1" : "=r"(v) : "r"(v));
    return v;
#endif
    v = v < -32768 ? -32768 : v;
    return v > 32767 ? 32767 : v;
}

/* sigmoid of `from`, or tanh if twice is not 0, with 15 fractional bits; `from` has 12 of them, less twice - 1. In
 * between two entries of the table the way is straight. tanh(v) = 2 sigmoid(2 v) - 1. */
BT_SHARED void bt_curve_q15(const int16_t *table, const int16_t *from, int16_t *to, int32_t count, int32_t twice)
{
    const int16_t *middle = table + 128;
    const int32_t factor = twice ? 2 : 1;
    const int32_t offset = twice ? -32768 : 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t v = bt_sat16(from[i] * (int32_t)(1 << twice));
        const int16_t *at = middle + (v >> 8);
        const int32_t part = v & 255;
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
        int32_t both, sum;
        __builtin_memcpy(&both, at, 4);
        __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(both), "r"((part << 16) | (256 - part)), "r"(128));
#else
        const int32_t sum = at[0] * (256 - part) + at[1] * part + 128;
#endif
        to[i] = (int16_t)(factor * (sum >> 8) + offset);
    }
}

/* The product of two numbers with 15 fractional bits in all, half up. */
BT_INLINE int32_t bt_mul_q15(int32_t a, int32_t b)
{
    return (a * b + (INT32_C(1) << 14)) >> 15;
}

BT_INLINE int8_t bt_hidden_i8(const bt_qrecurrent *p, int32_t h)
{
    return (int8_t)bt_clamp_i32(bt_scale(h, p->multiplier, p->zero), -128, 127);
}

/* The time of step i. */
BT_INLINE int32_t bt_qrecurrent_time(const bt_qrecurrent *p, int32_t i)
{
    return p->reverse ? p->time - 1 - i : i;
}

/* to[r] = w [count][n] times x, row r, with 12 fractional bits, added to what is there if `add`; `rows` has bias and
 * multiplier of each row, four apart. */
BT_INLINE const void *bt_gates(bt_four *four, const void *w, const int8_t *x, const int32_t *rows, int32_t shift,
                               int32_t add, int16_t *to, int32_t count, int32_t n)
{
    for (int32_t r = 0; r < count; r += 4, rows += 16, to += 4) {
        int32_t sums[4] = { 0, 0, 0, 0 };
        w = four(sums, x, w, count - r, n);
        BT_UNROLL_8
        for (int32_t k = 0; k < 4; k++) {
            if (count % 4 == 0 || r + k < count) {
                const int32_t acc = (sums[k] + rows[4 * k]) * (int32_t)(1 << shift);
                to[k] = (int16_t)bt_sat16(bt_scale(acc, rows[4 * k + 1], add ? to[k] : 0));
            }
        }
    }
    return w;
}

/* The states before the first step: those given, or zeros. */
BT_INLINE void bt_begin(const int16_t *from, int16_t *to, int32_t count)
{
    for (int32_t j = 0; j < count; j++)
        to[j] = from ? from[j] : 0;
}

BT_INLINE void bt_qlstm(bt_four *four, const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                        const void *w_ih, const void *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,
                        int16_t *h, int16_t *c, int16_t *gates)
{
    const int32_t n = p->hidden;
    int8_t *first = (int8_t *)(gates + 4 * n);
    bt_begin(h0, h, p->batch * n);
    bt_begin(c0, c, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n, c += n) {
        const int8_t *before = first;
        for (int32_t j = 0; j < n; j++)
            first[j] = bt_hidden_i8(p, h[j]);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_gates(four, w_ih, x + b * p->x_batch + t * p->x_time, rows, p->shift_ih, 0, gates, 4 * n, p->in);
            bt_gates(four, w_hh, before, rows + 2, p->shift_hh, 1, gates, 4 * n, n);
            bt_curve_q15(sigmoid, gates, gates, 2 * n, 0);
            bt_curve_q15(sigmoid, gates + 2 * n, gates + 2 * n, n, 1);
            bt_curve_q15(sigmoid, gates + 3 * n, gates + 3 * n, n, 0);
            for (int32_t j = 0; j < n; j++) {
                const int32_t added = ((int32_t)gates[j] * gates[2 * n + j] + (INT32_C(1) << 18)) >> 19;
                c[j] = (int16_t)bt_sat16(bt_mul_q15(gates[n + j], c[j]) + added);
            }
            bt_curve_q15(sigmoid, c, gates, n, 2);
            for (int32_t j = 0; j < n; j++) {
                h[j] = (int16_t)(((int32_t)gates[3 * n + j] * gates[j] + (INT32_C(1) << 16)) >> 17);
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

BT_INLINE void bt_qgru(bt_four *four, const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const void *w_ih,
                       const void *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y, int16_t *h,
                       int16_t *gates)
{
    const int32_t n = p->hidden;
    int8_t *first = (int8_t *)(gates + 4 * n);
    bt_begin(h0, h, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n) {
        const int8_t *before = first;
        for (int32_t j = 0; j < n; j++)
            first[j] = bt_hidden_i8(p, h[j]);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_gates(four, w_ih, x + b * p->x_batch + t * p->x_time, rows, p->shift_ih, 0, gates, 3 * n, p->in);
            const void *w_n = bt_gates(four, w_hh, before, rows + 2, p->shift_hh, 1, gates, 2 * n, n);
            bt_gates(four, w_n, before, rows + 8 * n + 2, p->shift_hh, 0, gates + 3 * n, n, n);
            bt_curve_q15(sigmoid, gates, gates, 2 * n, 0);
            for (int32_t j = 0; j < n; j++)
                gates[j] = (int16_t)bt_sat16(gates[2 * n + j] + bt_mul_q15(gates[j], gates[3 * n + j]));
            bt_curve_q15(sigmoid, gates, gates, n, 1);
            for (int32_t j = 0; j < n; j++) {
                const int32_t candidate = ((int32_t)gates[j] + 2) >> 2;
                h[j] = (int16_t)(candidate + bt_mul_q15(gates[n + j], h[j] - candidate));
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

/* The kernels of qrecurrent.h whose names end in `variant`, for weights of this type. */
#define BT_QRECURRENT_KERNELS(variant, type, four)                                                                     \
    BT_KERNEL void bt_qlstm_##variant(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,   \
                                      const type *w_ih, const type *w_hh, const int32_t *rows,                         \
                                      const int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)        \
    {                                                                                                                  \
        bt_qlstm(four, p, x, h0, c0, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);                          \
    }                                                                                                                  \
    BT_KERNEL void bt_qlstm_zero_##variant(const bt_qrecurrent *p, const int8_t *x, const type *w_ih,                  \
                                           const type *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,   \
                                           int16_t *h, int16_t *c, void *scratch)                                      \
    {                                                                                                                  \
        bt_qlstm(four, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);                      \
    }                                                                                                                  \
    BT_KERNEL void bt_qgru_##variant(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const type *w_ih,     \
                                     const type *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,         \
                                     int16_t *h, void *scratch)                                                        \
    {                                                                                                                  \
        bt_qgru(four, p, x, h0, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);                                  \
    }                                                                                                                  \
    BT_KERNEL void bt_qgru_zero_##variant(const bt_qrecurrent *p, const int8_t *x, const type *w_ih,                   \
                                          const type *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,    \
                                          int16_t *h, void *scratch)                                                   \
    {                                                                                                                  \
        bt_qgru(four, p, x, NULL, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);                                \
    }

#endif
