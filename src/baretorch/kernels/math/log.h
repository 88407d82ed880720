/* Logarithms and powers for float, without libm and without double precision.
 *
 * Largest error over all floats (tests/ops/test_math.py measures it):
 *
 *     bt_log_f32      1.1 ULP
 *     bt_log2_f32     2 ULP
 *     bt_log1p_f32    1.5 ULP
 *     bt_log10_f32    2 ULP
 *     bt_exp2_f32     1.5 ULP
 *     bt_pow_f32      2 ULP
 *
 * The logarithm of zero is minus infinity, of a negative number NaN. Powers below FLT_MIN are zero, not denormal. */
#ifndef BT_LOG_H
#define BT_LOG_H

#include "round.h"

#define BT_SQRT_HALF 0.707106769f

/* x = 2^k m with m from `least` to twice that, for finite x > 0. Gives m. */
BT_INLINE float bt_log_parts_f32(float x, float least, float *k)
{
    float denormal = 0.0f;
    if (x < 1.17549435e-38f) {
        x *= 8388608.0f;
        denormal = -23.0f;
    }
    uint32_t bits = bt_bits_f32(x) - bt_bits_f32(least);
    int32_t exponent = (int32_t)bits >> 23;
    *k = (float)exponent + denormal;
    return bt_from_bits_f32((bits & 0x007fffffu) + bt_bits_f32(least));
}

/* log(1 + f) - f for f from sqrt(1/2) - 1 to sqrt(2) - 1 */
BT_INLINE float bt_log_tail_f32(float f)
{
    float p = -0.0762424842f; /* minimax for (log(1 + f) - f + f^2 / 2) / f^3 */
    p = p * f + 0.127532914f;
    p = p * f - 0.131568864f;
    p = p * f + 0.142009124f;
    p = p * f - 0.16623348f;
    p = p * f + 0.200012609f;
    p = p * f - 0.250008225f;
    p = p * f + 0.333333313f;
    return (p * f - 0.5f) * (f * f);
}

/* The logarithm of zero, negative numbers, infinity and NaN. */
BT_INLINE float bt_log_special_f32(float x)
{
    return x == 0.0f ? -BT_INF : x < 0.0f ? BT_NAN : x;
}

BT_INLINE float bt_log_f32(float x)
{
    if (!(x > 0.0f && x < BT_INF))
        return bt_log_special_f32(x);
    float k;
    float f = bt_log_parts_f32(x, BT_SQRT_HALF, &k) - 1.0f;
    float tail = bt_log_tail_f32(f) - k * 2.12194440e-4f; /* ln 2 in two parts; k times the first is exact */
    return (tail + f) + k * 0.693359375f;
}

BT_INLINE float bt_log2_f32(float x)
{
    if (!(x > 0.0f && x < BT_INF))
        return bt_log_special_f32(x);
    float k;
    float f = bt_log_parts_f32(x, BT_SQRT_HALF, &k) - 1.0f;
    return (bt_log_tail_f32(f) + f) * 1.44269504f + k;
}

BT_INLINE float bt_log10_f32(float x)
{
    if (!(x > 0.0f && x < BT_INF))
        return bt_log_special_f32(x);
    float k;
    float f = bt_log_parts_f32(x, BT_SQRT_HALF, &k) - 1.0f;
    float tail = (bt_log_tail_f32(f) + f) * 0.434294492f + k * 4.60503907e-6f; /* lg 2 in two parts */
    return tail + k * 0.301025391f;
}

/* log(1 + x), which keeps its precision near zero. */
BT_INLINE float bt_log1p_f32(float x)
{
    if (!(x > -1.0f && x < BT_INF))
        return bt_log_special_f32(x + 1.0f);
    if (x > -0.2928932f && x < 0.41421354f)
        return bt_log_tail_f32(x) + x;
    float u = x + 1.0f;
    float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x); /* when the sum was rounded */
    return bt_log_f32(u) + lost / u;
}

/* The leading 12 bits of a float's 24: products of two such are exact. */
BT_INLINE float bt_leading_f32(float x)
{
    return bt_from_bits_f32(bt_bits_f32(x) & 0xfffff000u);
}

/* log2(x) as the sum of two floats, good to about 32 bits, for finite x > 0. Gives the first, which has 12 bits. */
BT_INLINE float bt_log2_pair_f32(float x, float *low)
{
    float k;
    float m = bt_log_parts_f32(x, 0.84f, &k);
    float c = 1.0f, c_low = 0.0f; /* log2(m) = log2(c) + log2(m / c) for a c near m, so that the series is short */
    if (m > 1.19f) {
        c = 1.40625f;
        c_low = 3.18072672e-5f;
        k += 0.491821289f; /* 12 bits of log2(c) */
    }
    float d = m + c;
    float d_low = m - (d - c); /* when the sum was rounded */
    float s = (m - c) / d;
    float s_high = bt_leading_f32(s), d_high = bt_leading_f32(d);
    float s_low = ((((m - c) - s_high * d_high) - s_high * (d - d_high)) - s_high * d_low) / d;
    float z = s * s;
    float p = 0.289108872f; /* minimax for (log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2 */
    p = p * z + 0.399984509f;
    p = p * z + 0.666666687f;
    float rest = p * (z * s) + 2.0f * s_low; /* log(m / c) = 2 s_high + rest */
    float lead = 2.0f * s_high * 1.44238281f; /* 12 bits of 1 / ln 2 */
    rest = 2.0f * s_high * 3.12228389e-4f + rest * 1.44269504f + c_low;
    float sum = k + lead;
    rest += lead - (sum - k);
    float high = bt_leading_f32(sum + rest);
    *low = (sum - high) + rest;
    return high;
}

/* 2^(high + low), where the first has few enough bits for its whole part to be taken away exactly. */
BT_INLINE float bt_exp2_pair_f32(float high, float low)
{
    float sum = high + low;
    if (!((high - 128.0f) + low < 0.0f)) /* the sum itself may round to 128, or to -126 */
        return BT_INF;
    if ((high + 126.0f) + low < 0.0f)
        return 0.0f;
    float whole = bt_round_f32(sum);
    float y = bt_exp_f32(((high - whole) + low) * 0.693147181f);
    return bt_from_bits_f32(bt_bits_f32(y) + ((uint32_t)(int32_t)whole << 23));
}

BT_INLINE float bt_exp2_f32(float x)
{
    return x != x ? x : bt_exp2_pair_f32(x, 0.0f);
}

/* As C's pow: anything to the power 0 and 1 to any power are 1, even for NaN. */
BT_INLINE float bt_pow_f32(float x, float y)
{
    if (y == 0.0f || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return BT_NAN;
    float a = bt_abs_f32(x), b = bt_abs_f32(y);
    int whole = bt_trunc_f32(y) == y;
    int odd = whole && b < 16777216.0f && ((uint32_t)b & 1u) != 0u;
    float sign = (bt_bits_f32(x) >> 31) != 0u && odd ? -1.0f : 1.0f;
    if (a == 1.0f && whole)
        return sign;
    if (a == 0.0f || a == BT_INF || b > 1e12f) /* the last is beyond all exponents even for the a nearest to 1 */
        return ((a > 1.0f) == (y > 0.0f) ? BT_INF : 0.0f) * sign;
    if (x < 0.0f && !whole)
        return BT_NAN;
    float low;
    float high = bt_log2_pair_f32(a, &low);
    float y_high = bt_leading_f32(y);
    return bt_exp2_pair_f32(y_high * high, y * low + (y - y_high) * high) * sign;
}

#endif
