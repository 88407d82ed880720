/* Hyperbolic functions and their inverses for float, without libm and without double precision; tanh is in math.h.
 *
 * Largest error over all floats (tests/ops/test_math.py measures it):
 *
 *     bt_sinh_f32     2.5 ULP
 *     bt_cosh_f32     1.5 ULP
 *     bt_asinh_f32    2 ULP
 *     bt_acosh_f32    2 ULP
 *     bt_atanh_f32    2.5 ULP
 *
 * acosh of what is below 1 and atanh of what is outside of [-1, 1] are NaN; atanh of 1 is infinity. */
#ifndef BT_HYPERBOLIC_H
#define BT_HYPERBOLIC_H

#include "log.h"

#define BT_COSH_LARGEST 89.4159851f /* from there on sinh and cosh are beyond all floats */
#define BT_LOG_2 0.693147181f

/* e^x / 2 for 0 <= x <= BT_COSH_LARGEST, where e^x itself may be beyond all floats. */
BT_INLINE float bt_half_exp_f32(float x)
{
    uint32_t n;
    float q = bt_exp_parts_f32(x, &n);
    return bt_from_bits_f32(bt_bits_f32(1.0f + q) + n - 0x00800000u);
}

BT_INLINE float bt_sinh_f32(float x)
{
    float a = bt_abs_f32(x), y;
    if (!(a <= BT_COSH_LARGEST))
        return x * BT_INF;
    if (a < 1.0f) {
        float e = bt_expm1_f32(a);
        y = 0.5f * (e + e / (e + 1.0f));
    } else {
        float half = bt_half_exp_f32(a);
        y = half - 0.25f / half;
    }
    return bt_with_sign_f32(y, x);
}

BT_INLINE float bt_cosh_f32(float x)
{
    float a = bt_abs_f32(x);
    if (!(a <= BT_COSH_LARGEST))
        return a * BT_INF;
    float half = bt_half_exp_f32(a);
    return half + 0.25f / half;
}

/* log(a + sqrt(a^2 + 1)), as the logarithm of 1 + something that keeps its precision near zero. */
BT_INLINE float bt_asinh_f32(float x)
{
    float a = bt_abs_f32(x);
    float y = a < 4096.0f ? bt_log1p_f32(a + a * a / (bt_sqrt_f32(a * a + 1.0f) + 1.0f)) : bt_log_f32(a) + BT_LOG_2;
    return bt_with_sign_f32(y, x);
}

/* log(x + sqrt(x^2 - 1)), in d = x - 1 */
BT_INLINE float bt_acosh_f32(float x)
{
    if (!(x >= 1.0f))
        return BT_NAN;
    if (x >= 4096.0f)
        return bt_log_f32(x) + BT_LOG_2;
    float d = x - 1.0f;
    return bt_log1p_f32(d + bt_sqrt_f32(2.0f * d + d * d));
}

BT_INLINE float bt_atanh_f32(float x)
{
    float a = bt_abs_f32(x);
    return bt_with_sign_f32(0.5f * bt_log1p_f32(2.0f * a / (1.0f - a)), x);
}

#endif
