/* The two layers, around a function that multiplies two rows of bytes. */
#ifndef BT_QRECURRENT_LAYERS_H
#define BT_QRECURRENT_LAYERS_H

#include "qrecurrent.h"

/* sum + a[0] * b[0] + … */
typedef int32_t bt_dot(const int8_t *a, const int8_t *b, int32_t count, int32_t sum);

/* v has 12 fractional bits, the result 15. */
BT_INLINE int32_t bt_sigmoid_q15(const int16_t *table, int32_t v)
{
    int32_t size = v < 0 ? -v : v;
    size = size > 32767 ? 32767 : size;
    const int16_t *at = table + (size >> 8);
    const int32_t s = at[0] + (((at[1] - at[0]) * (size & 255) + 128) >> 8);
    return v < 0 ? 32768 - s : s;
}

BT_INLINE int32_t bt_tanh_q15(const int16_t *table, int32_t v)
{
    return 2 * bt_sigmoid_q15(table, 2 * v) - 32768;
}

BT_INLINE int32_t bt_sat16(int32_t v)
{
    v = v < -32768 ? -32768 : v;
    return v > 32767 ? 32767 : v;
}

/* The product of two numbers with 15 fractional bits in all, half up. */
BT_INLINE int32_t bt_mul_q15(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
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

/* What input and hidden state give to row r, with 12 fractional bits. */
BT_INLINE int32_t bt_from_input(bt_dot *dot, const bt_qrecurrent *p, const int8_t *x, const int8_t *w,
                                const int32_t *rows, int32_t r)
{
    return bt_scale(dot(w + r * p->in, x, p->in, rows[4 * r]) * (int32_t)(1 << p->shift_ih), rows[4 * r + 1], 0);
}

BT_INLINE int32_t bt_from_hidden(bt_dot *dot, const bt_qrecurrent *p, const int8_t *h, const int8_t *w,
                                 const int32_t *rows, int32_t r)
{
    const int32_t acc = dot(w + r * p->hidden, h, p->hidden, rows[4 * r + 2]);
    return bt_scale(acc * (int32_t)(1 << p->shift_hh), rows[4 * r + 3], 0);
}

/* The states before the first step: those given, or zeros. */
BT_INLINE void bt_begin(const int16_t *from, int16_t *to, int32_t count)
{
    for (int32_t j = 0; j < count; j++)
        to[j] = from ? from[j] : 0;
}

BT_INLINE void bt_qlstm(bt_dot *dot, const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                        const int8_t *w_ih, const int8_t *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,
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
            for (int32_t r = 0; r < 4 * n; r++) {
                const int32_t v = bt_sat16(bt_from_input(dot, p, x + b * p->x_batch + t * p->x_time, w_ih, rows, r) +
                                           bt_from_hidden(dot, p, before, w_hh, rows, r));
                const int32_t candidate = r >= 2 * n && r < 3 * n;
                gates[r] = (int16_t)(candidate ? bt_tanh_q15(sigmoid, v) : bt_sigmoid_q15(sigmoid, v));
            }
            for (int32_t j = 0; j < n; j++) {
                const int32_t added = (gates[j] * gates[2 * n + j] + (1 << 18)) >> 19;
                c[j] = (int16_t)bt_sat16(bt_mul_q15(gates[n + j], c[j]) + added);
                h[j] = (int16_t)bt_mul_q15(gates[3 * n + j], bt_tanh_q15(sigmoid, 2 * c[j]));
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

BT_INLINE void bt_qgru(bt_dot *dot, const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int8_t *w_ih,
                       const int8_t *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y, int16_t *h,
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
            for (int32_t r = 0; r < 3 * n; r++) {
                const int32_t v = bt_from_input(dot, p, x + b * p->x_batch + t * p->x_time, w_ih, rows, r);
                const int32_t u = bt_from_hidden(dot, p, before, w_hh, rows, r);
                if (r < 2 * n) {
                    gates[r] = (int16_t)bt_sigmoid_q15(sigmoid, bt_sat16(v + u));
                } else {
                    gates[r] = (int16_t)bt_sat16(v);
                    gates[r + n] = (int16_t)bt_sat16(u);
                }
            }
            for (int32_t j = 0; j < n; j++) {
                const int32_t v = bt_sat16(gates[2 * n + j] + bt_mul_q15(gates[j], gates[3 * n + j]));
                const int32_t candidate = (bt_tanh_q15(sigmoid, v) + 4) >> 3;
                h[j] = (int16_t)(candidate + bt_mul_q15(gates[n + j], h[j] - candidate));
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

/* The kernels of qrecurrent.h whose names end in `variant`. */
#define BT_QRECURRENT_KERNELS(variant, dot)                                                                            \
    BT_KERNEL void bt_qlstm_##variant(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,   \
                                      const int8_t *w_ih, const int8_t *w_hh, const int32_t *rows,                     \
                                      const int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)        \
    {                                                                                                                  \
        bt_qlstm(dot, p, x, h0, c0, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);                           \
    }                                                                                                                  \
    BT_KERNEL void bt_qlstm_zero_##variant(const bt_qrecurrent *p, const int8_t *x, const int8_t *w_ih,                \
                                           const int8_t *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y, \
                                           int16_t *h, int16_t *c, void *scratch)                                      \
    {                                                                                                                  \
        bt_qlstm(dot, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);                       \
    }                                                                                                                  \
    BT_KERNEL void bt_qgru_##variant(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int8_t *w_ih,   \
                                     const int8_t *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,       \
                                     int16_t *h, void *scratch)                                                        \
    {                                                                                                                  \
        bt_qgru(dot, p, x, h0, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);                                   \
    }                                                                                                                  \
    BT_KERNEL void bt_qgru_zero_##variant(const bt_qrecurrent *p, const int8_t *x, const int8_t *w_ih,                 \
                                          const int8_t *w_hh, const int32_t *rows, const int16_t *sigmoid, int8_t *y,  \
                                          int16_t *h, void *scratch)                                                   \
    {                                                                                                                  \
        bt_qgru(dot, p, x, NULL, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);                                 \
    }

#endif
