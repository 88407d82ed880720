/* The shared parts of recurrent layers for all cores: curves, and the arithmetic of one unit. */
#ifndef BT_QRECURRENT_CURVES_H
#define BT_QRECURRENT_CURVES_H

#include "qrecurrent.h"

typedef enum { BT_QLSTM, BT_QGRU, BT_QRNN } bt_kind;

BT_INLINE int32_t bt_sat16(int32_t v)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    __asm__("ssat %0, #16, %1" : "=r"(v) : "r"(v));
    return v;
#endif
    v = v < -32768 ? -32768 : v;
    return v > 32767 ? 32767 : v;
}

/* sigmoid with 29 fractional bits, of which 13 count, of a number of 16 bits with 12; `middle` is where the table has
 * that of 0. Each of the 256 pieces is straight: its word has the slope in the low half, and is the other term itself. */
BT_INLINE int32_t bt_sigmoid_q29(const BT_FLASH int32_t *middle, int32_t v)
{
    const int32_t piece = middle[v >> 8];
    return piece + (int32_t)(int16_t)piece * (int16_t)v;
}

#define BT_HALF_Q29 (INT32_C(1) << 28) /* tanh(v / 2) / 2 = sigmoid(v) - 1/2 */

/* tanh with 13 fractional bits, of half of a number with 12. */
BT_INLINE int32_t bt_tanh_q13(const BT_FLASH int32_t *middle, int32_t v)
{
    return (bt_sigmoid_q29(middle, v) - BT_HALF_Q29 - (INT32_C(1) << 14)) >> 15;
}

/* A share with 29 fractional bits, of which 13 count, of a number. */
BT_INLINE int32_t bt_share(int32_t share, int32_t of)
{
    return ((share >> 16) * of + (INT32_C(1) << 12)) >> 13;
}

/* A unit's next hidden state, of its gates' sigmoids with 29 fractional bits; its cell is renewed. */
BT_INLINE int32_t bt_lstm_unit(const BT_FLASH int32_t *middle, int32_t i, int32_t f, int32_t g, int32_t o, int16_t *c)
{
    const int32_t in = (i >> 16) * ((g - BT_HALF_Q29) >> 16) + (INT32_C(1) << 13);
    const int32_t next = bt_sat16(((f >> 16) * *c * 2 + in) >> 14);
    *c = (int16_t)next;
    const int32_t out = bt_sigmoid_q29(middle, bt_sat16(next * 4)) - BT_HALF_Q29;
    return ((o >> 16) * (out >> 16) + (INT32_C(1) << 11)) >> 12;
}

/* A unit's next hidden state, of the sigmoids of reset and update, what the candidate has of the input, and what the
 * reset gate applies to. */
BT_INLINE int32_t bt_gru_unit(const BT_FLASH int32_t *middle, int32_t r, int32_t z, int32_t v, int32_t u, int32_t h)
{
    const int32_t candidate = bt_tanh_q13(middle, bt_sat16(2 * (v + bt_share(r, u))));
    return candidate + bt_share(z, bt_sat16(h - candidate));
}

/* y[at] of a hidden state. */
BT_INLINE void bt_give(const bt_qrecurrent *p, int32_t wide, void *y, int32_t at, int32_t h)
{
    const int32_t v = bt_scale(h * (INT32_C(1) << p->y_shift), p->multiplier, p->zero);
    if (wide)
        ((int16_t *)y)[at] = (int16_t)bt_sat16(v);
    else
        ((int8_t *)y)[at] = (int8_t)bt_clamp_i32(v, -128, 127);
}

/* The time of step i. */
BT_INLINE int32_t bt_qrecurrent_time(const bt_qrecurrent *p, int32_t i)
{
    return p->reverse ? p->time - 1 - i : i;
}

/* The states before the first step: those given, or zeros. */
BT_INLINE void bt_begin(const int16_t *from, int16_t *to, int32_t count)
{
    for (int32_t j = 0; j < count; j++)
        to[j] = from ? from[j] : 0;
}

#endif
