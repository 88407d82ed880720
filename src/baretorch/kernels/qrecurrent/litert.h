/* An LSTM as LiteRT computes it, number by number: a network passes on its rounding errors, so a result that is only
 * close drifts away in a few steps. docs/arithmetic.md has the definition. */
#ifndef BT_QRECURRENT_LITERT_H
#define BT_QRECURRENT_LITERT_H

#include "curves.h"

/* sums[k] += row k of w [.][n] times x, for k below `count` and 4; gives where the next rows begin */
typedef const BT_FLASH void *bt_four(int32_t sums[4], const int8_t *x, const BT_FLASH void *w, int32_t count,
                                     int32_t n);

/* The product of two numbers of 16 bits, of which 15 are fractional in all, half up. */
BT_INLINE int32_t bt_mul_short(int32_t a, int32_t b)
{
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
    int32_t sum;
    __asm__("smlabb %0, %1, %2, %3" : "=r"(sum) : "r"(a), "r"(b), "r"(INT32_C(1) << 14));
    return sum >> 15;
#else
    return (a * b + (INT32_C(1) << 14)) >> 15;
#endif
}

/* v / 2^bits, half away from zero; bits is at least 1. */
BT_INLINE int32_t bt_away(int32_t v, int32_t bits)
{
    return (v + (INT32_C(1) << (bits - 1)) + (v >> 31)) >> bits;
}

/* e^-v for a v above 0 with these fractional bits, at least 8: of what is left of v above quarters by a series around
 * 1/8, then times e^-1/4, e^-1/2, e^-1, ... for the quarters. */
BT_INLINE int32_t bt_exp_q15(int32_t v, int32_t bits)
{
    const int32_t quarters = (v - 1) >> (bits - 2);
    const int32_t x = 4096 - (v - quarters * (1 << (bits - 2))) * (1 << (15 - bits));
    const int32_t x2 = bt_mul_short(x, x);
    const int32_t x4 = (bt_mul_short(x2, x2) + 2) >> 2;
    const int32_t rest = (bt_mul_short(x4 + bt_mul_short(x2, x), 10923) + x2 + 1) >> 1;
    int32_t e = 28918 + bt_mul_short(x + rest, 28918);
    e = quarters & 1 ? bt_mul_short(e, 25520) : e;
    e = quarters & 2 ? bt_mul_short(e, 19875) : e;
    e = quarters & 4 ? bt_mul_short(e, 12055) : e;
    if (quarters >= 8) {
        e = quarters & 8 ? bt_mul_short(e, 4435) : e;
        e = quarters & 16 ? bt_mul_short(e, 600) : e;
        e = quarters & 32 ? bt_mul_short(e, 11) : e;
        e = quarters >= 64 ? 0 : e;
    }
    return e;
}

/* 2 / (1 + e) with 13 fractional bits, in three steps of Newton's from 48/17 - 32/17 d on. */
BT_INLINE int32_t bt_reciprocal(int32_t e)
{
    const int32_t half = (e + 32768) >> 1;
    int32_t x = 23130 + bt_mul_short(half, -15420);
    BT_UNROLL_8
    for (int32_t k = 0; k < 3; k++)
        x += bt_mul_short(x, 8192 - bt_mul_short(half, x)) * 4;
    return x;
}

/* 1 / (1 + e^-v) of numbers with 12 fractional bits, with 15, in place. */
BT_SHARED void bt_litert_sigmoid(int16_t *v, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t x = v[i];
        const int32_t y = x ? bt_sat16(2 * bt_reciprocal(bt_exp_q15(x < 0 ? -x : x, 12))) : 16384;
        v[i] = (int16_t)(x < 0 ? 32767 - y : y);
    }
}

/* (1 - e^-2v) / (1 + e^-2v) of numbers with these fractional bits, with 15. */
BT_SHARED void bt_litert_tanh(const int16_t *from, int16_t *to, int32_t count, int32_t bits)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t v = from[i];
        const int32_t y = v ? bt_sat16(4 * (bt_reciprocal(bt_exp_q15(v < 0 ? -v : v, bits - 1)) - 8192)) : 0;
        to[i] = (int16_t)(v < 0 ? -y : y);
    }
}

/* to[r] = w [4][hidden][n] times x with 12 fractional bits, added to what is there if `add`; `biases` has one of each
 * row, two apart, `scales` multiplier and shift of each gate, four apart. A shift to the right rounds once more. */
BT_INLINE void bt_litert_gates(bt_four *four, const BT_FLASH void *w, const int8_t *x, const BT_FLASH int32_t *biases,
                               const BT_FLASH int32_t *scales, int32_t add, int16_t *to, int32_t hidden, int32_t n)
{
    for (int32_t gate = 0; gate < 4; gate++, scales += 4, biases += 2 * hidden, to += hidden) {
        const int32_t multiplier = scales[0], left = scales[1] > 0 ? scales[1] : 0, right = left - scales[1];
        const int32_t half = (INT32_C(1) << right) >> 1, away = right ? -1 : 0;
        for (int32_t r = 0; r < hidden; r += 4) {
            int32_t sums[4] = { 0, 0, 0, 0 };
            w = four(sums, x, w, hidden - r, n);
            BT_UNROLL_8
            for (int32_t k = r; k < r + 4; k++) {
                if (hidden % 4 == 0 || k < hidden) {
                    const int32_t v = bt_scale((sums[k - r] + biases[2 * k]) * (INT32_C(2) << left), multiplier, 0);
                    to[k] = (int16_t)bt_sat16(((v + half + ((v >> 31) & away)) >> right) + (add ? to[k] : 0));
                }
            }
        }
    }
}

BT_INLINE void bt_litert_lstm(bt_four *four, const bt_litert *p, const int8_t *x, const int8_t *h0, const int16_t *c0,
                              const BT_FLASH void *w_ih, const BT_FLASH void *w_hh, const BT_FLASH int32_t *biases,
                              const BT_FLASH int32_t *scales, int8_t *y, int16_t *c, int16_t *gates)
{
    const int32_t n = p->hidden;
    bt_begin(c0, c, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, c += n) {
        const int8_t *before = h0 + b * n;
        for (int32_t t = 0; t < p->time; t++) {
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_litert_gates(four, w_ih, x + b * p->x_batch + t * p->x_time, biases, scales, 0, gates, n, p->in);
            bt_litert_gates(four, w_hh, before, biases + 1, scales + 2, 1, gates, n, n);
            bt_litert_sigmoid(gates, 2 * n);
            bt_litert_tanh(gates + 2 * n, gates + 2 * n, n, 12);
            bt_litert_sigmoid(gates + 3 * n, n);
            for (int32_t j = 0; j < n; j++) {
                const int32_t added = bt_away((int32_t)gates[j] * gates[2 * n + j], 30 - p->cell_bits);
                c[j] = (int16_t)bt_clamp_i32(bt_away((int32_t)gates[n + j] * c[j], 15) + added, p->cell_lo, p->cell_hi);
            }
            bt_litert_tanh(c, gates, n, p->cell_bits);
            for (int32_t j = 0; j < n; j++) {
                const int32_t h = bt_away(bt_scale((int32_t)gates[3 * n + j] * gates[j] * 2, p->multiplier, 0), -p->shift);
                now[j] = (int8_t)bt_clamp_i32(h + p->zero, -128, 127);
            }
            before = now;
        }
    }
}

/* The kernel of qrecurrent.h whose name ends in `variant`, for weights of this type. */
#define BT_LITERT_LSTM(variant, type, four)                                                                            \
    BT_KERNEL void bt_litert_lstm_##variant(const bt_litert *p, const int8_t *x, const int8_t *h0,              \
                                            const int16_t *c0, const BT_FLASH type *w_ih, const BT_FLASH type *w_hh,   \
                                            const BT_FLASH int32_t *biases, const BT_FLASH int32_t *scales,            \
                                            int8_t *y, int16_t *c,                                                     \
                                            void *scratch)                                                             \
    {                                                                                                                  \
        bt_litert_lstm(four, p, x, h0, c0, w_ih, w_hh, biases, scales, y, c, (int16_t *)scratch);                      \
    }

#endif
