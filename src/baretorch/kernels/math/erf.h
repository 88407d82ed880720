/* The error function and its kin for float, without libm and without double precision.
 *
 * Largest error over all floats (tests/ops/test_math.py measures it):
 *
 *     bt_erf_f32      3.5 ULP
 *     bt_erfc_f32     5 ULP
 *     bt_erfcx_f32    6 ULP
 *     bt_erfinv_f32   4 ULP
 *
 * erfc(x) below FLT_MIN (x > 9.19) is zero, not denormal. erfinv of what is outside of [-1, 1] is NaN. */
#ifndef BT_ERF_H
#define BT_ERF_H

#include "log.h"

BT_INLINE float bt_erf_f32(float x)
{
    float a = bt_abs_f32(x);
    float y = 1.0f;
    if (!(a >= 3.92f)) { /* from there on it rounds to 1 */
        float p = 3.60281338e-5f; /* minimax for -log(1 - erf a) / a */
        p = p * a - 3.49194277e-4f;
        p = p * a + 1.17114035e-3f;
        p = p * a + 3.01878346e-4f;
        p = p * a - 1.93775278e-2f;
        p = p * a + 1.02828979e-1f;
        p = p * a + 6.36615157e-1f;
        p = p * a + 1.12837923f;
        y = -bt_expm1_f32(-(p * a));
    }
    return bt_with_sign_f32(y, x);
}

/* e^(a^2) erfc(a) for a >= 0 */
BT_INLINE float bt_erfcx_of_f32(float a)
{
    if (a > 1e6f)
        return 0.564189584f / a;
    float t = (a - 2.5f) / (a + 2.5f);
    float p = -5.9709917e-5f; /* minimax for (1 + 2 a) times it */
    p = p * t - 6.43621679e-5f;
    p = p * t + 5.69735945e-4f;
    p = p * t + 4.64447716e-4f;
    p = p * t - 4.34454996e-3f;
    p = p * t + 9.45788925e-4f;
    p = p * t + 3.27494852e-2f;
    p = p * t - 1.0297019e-1f;
    p = p * t + 1.57631442e-1f;
    p = p * t - 9.90242884e-2f;
    p = p * t - 1.22356825e-1f;
    p = p * t + 1.26483822f;
    return p / (1.0f + 2.0f * a);
}

/* e^(s a^2) for s = 1 or -1, without the rounding of a^2: its first 12 bits squared are exact. */
BT_INLINE float bt_exp_square_f32(float a, float s)
{
    float high = bt_leading_f32(a);
    return bt_exp_f32(s * high * high) * bt_exp_f32(s * (a - high) * (a + high));
}

/* 1 - erf x, which keeps its precision where it is small. */
BT_INLINE float bt_erfc_f32(float x)
{
    float a = bt_abs_f32(x);
    if (a < 0.45f)
        return 1.0f - bt_erf_f32(x);
    float y = a > 9.2f ? 0.0f : bt_exp_square_f32(a, -1.0f) * bt_erfcx_of_f32(a);
    return x < 0.0f ? 2.0f - y : y;
}

/* e^(x^2) erfc(x) */
BT_INLINE float bt_erfcx_f32(float x)
{
    float a = bt_abs_f32(x);
    float y = bt_erfcx_of_f32(a);
    if (x < 0.0f)
        return a > 9.4f ? BT_INF : 2.0f * bt_exp_square_f32(a, 1.0f) - y;
    return y;
}

BT_INLINE float bt_erfinv_f32(float x)
{
    float a = bt_abs_f32(x);
    if (a == 1.0f)
        return x * BT_INF;
    float w = -bt_log_f32((1.0f - a) * (1.0f + a)), p;
    if (w < 5.0f) {
        float v = w - 2.5f;
        p = -8.79105677e-9f; /* minimax for erfinv(x) / x */
        p = p * v + 2.32326443e-8f;
        p = p * v + 4.66170661e-7f;
        p = p * v - 3.46270485e-6f;
        p = p * v - 4.96334769e-6f;
        p = p * v + 2.18344445e-4f;
        p = p * v - 1.2527419e-3f;
        p = p * v - 4.17738687e-3f;
        p = p * v + 2.4664028e-1f;
        p = p * v + 1.50140941f;
    } else {
        float v = bt_sqrt_f32(w) - 3.0f;
        p = 1.10100482e-4f; /* the same */
        p = p * v - 3.04365327e-4f;
        p = p * v - 4.86760364e-5f;
        p = p * v + 1.47865375e-3f;
        p = p * v - 3.60164116e-3f;
        p = p * v + 5.6894049e-3f;
        p = p * v - 7.63639063e-3f;
        p = p * v + 9.44500789e-3f;
        p = p * v + 1.00167489f;
        p = p * v + 2.83297682f;
    }
    return p * x;
}

#endif
