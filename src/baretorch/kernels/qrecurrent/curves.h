/* What the recurrent layers of all cores share: curves, and the arithmetic of one unit. */
#ifndef BT_QRECURRENT_CURVES_H
#define BT_QRECURRENT_CURVES_H

#include "qrecurrent.h"

BT_INLINE int32_t bt_sat16(int32_t v)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    __asm__("ssat %0, #16, %1" : "=r"(v) : "r"(v));
    return v;
#endif
    v = v < -32768 ? -32768 : v;
    return v > 32767 ? 32767 : v;
}

/* sigmoid with 15 fractional bits, of a number of 16 bits with 12; `middle` is where the table has that of 0. In
 * between two entries the way is straight. */
BT_INLINE int32_t bt_sigmoid_q15(const BT_FLASH int16_t *middle, int32_t v)
{
    const BT_FLASH int16_t *at = middle + (v >> 8);
    const int32_t part = v & 255;
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
    int32_t both, sum;
    __builtin_memcpy(&both, at, 4);
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(both), "r"(part * 65535 + 256), "r"(128)); /* part, 256 - part */
#else
    const int32_t sum = at[0] * (256 - part) + at[1] * part + 128;
#endif
    return sum >> 8;
}

/* tanh(v) = 2 sigmoid(2 v) - 1, of a number with 12 fractional bits, or with 11 if `times` is 4. */
BT_INLINE int32_t bt_tanh_q15(const BT_FLASH int16_t *middle, int32_t v, int32_t times)
{
    return 2 * bt_sigmoid_q15(middle, bt_sat16(v * times)) - 32768;
}

/* The product of two numbers with 15 fractional bits in all, half up. */
BT_INLINE int32_t bt_mul_q15(int32_t a, int32_t b)
{
    return (a * b + (INT32_C(1) << 14)) >> 15;
}

/* A unit's next hidden state, of gates with 12 fractional bits; its cell is renewed. */
BT_INLINE int32_t bt_lstm_unit(const BT_FLASH int16_t *middle, int32_t i, int32_t f, int32_t g, int32_t o, int16_t *c)
{
    const int32_t in = bt_sigmoid_q15(middle, i) * bt_tanh_q15(middle, g, 2);
    const int32_t kept = bt_mul_q15(bt_sigmoid_q15(middle, f), *c);
    const int32_t next = bt_sat16(kept + ((in + (INT32_C(1) << 18)) >> 19));
    *c = (int16_t)next;
    return (bt_sigmoid_q15(middle, o) * bt_tanh_q15(middle, next, 4) + (INT32_C(1) << 16)) >> 17;
}

/* A unit's next hidden state, of what reset, update and candidate have, and of what the reset gate applies to. */
BT_INLINE int32_t bt_gru_unit(const BT_FLASH int16_t *middle, int32_t r, int32_t z, int32_t v, int32_t u, int32_t h)
{
    const int32_t sum = bt_sat16(v + bt_mul_q15(bt_sigmoid_q15(middle, r), u));
    const int32_t candidate = (bt_tanh_q15(middle, sum, 2) + 2) >> 2;
    return candidate + bt_mul_q15(bt_sigmoid_q15(middle, z), h - candidate);
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

/* The states before the first step: those given, or zeros. */
BT_INLINE void bt_begin(const int16_t *from, int16_t *to, int32_t count)
{
    for (int32_t j = 0; j < count; j++)
        to[j] = from ? from[j] : 0;
}

#endif
