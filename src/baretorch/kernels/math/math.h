/* exp and its kin for float, without libm and without double precision. log.h, trig.h, erf.h and round.h hold the others.
 *
 * Largest error over all floats, against double precision, with and without fused multiply-add
 * (tests/ops/test_math.py measures it):
 *
 *     bt_exp_f32      1.1 ULP
 *     bt_expm1_f32    2 ULP
 *     bt_tanh_f32     3 ULP
 *     bt_sigmoid_f32  3 ULP
 *
 * NaN gives NaN, and infinities give the limits. exp(x) below FLT_MIN (x < -87.33) is zero, not denormal; so is
 * sigmoid(x) for x < -88.72. Denormal arguments are treated as what they are: exp gives 1, tanh and expm1 give
 * their argument. */
#ifndef BT_MATH_H
#define BT_MATH_H

#include "../bt.h"

BT_INLINE uint32_t bt_bits_f32(float v)
{
    union {
        float f;
        uint32_t u;
    } cast = {.f = v};
    return cast.u;
}

BT_INLINE float bt_from_bits_f32(uint32_t v)
{
    union {
        uint32_t u;
        float f;
    } cast = {.u = v};
    return cast.f;
}

/* e^x = 2^n (1 + q) with |q| < 0.42, for |x| < 89. Gives q; n comes as n << 23, ready to be added to an exponent. */
BT_INLINE float bt_exp_parts_f32(float x, uint32_t *n)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    float shifted = x * 1.44269504f + to_integer;
    float k = shifted - to_integer;
    float r = x - k * 0.693359375f; /* ln 2 in two parts; k times the first is exact */
    r = r + k * 2.12194440e-4f;
    float p = 1.38143205e-3f; /* minimax for (e^r - 1 - r) / r^2, |r| <= ln 2 / 2 */
    p = p * r + 8.36885162e-3f;
    p = p * r + 4.16684002e-2f;
    p = p * r + 1.66665196e-1f;
    p = p * r + 4.99999940e-1f;
    *n = bt_bits_f32(shifted) << 23;
    return p * (r * r) + r;
}

BT_INLINE float bt_exp_f32(float x)
{
    if ((bt_bits_f32(x) & 0x7fffffffu) > 0x42aeac4fu) { /* |x| > 87.336540, or NaN */
        if (x < 0.0f)
            return 0.0f;
        if (!(x <= 88.7228317f))
            return x + BT_INF;
    }
    uint32_t n;
    float q = bt_exp_parts_f32(x, &n);
    return bt_from_bits_f32(bt_bits_f32(1.0f + q) + n);
}

/* e^x - 1, which keeps its precision near zero. */
BT_INLINE float bt_expm1_f32(float x)
{
    if (!(x > -20.0f && x < 20.0f)) /* from there on the 1 is lost, or the exponential */
        return bt_exp_f32(x) - 1.0f;
    uint32_t n;
    float q = bt_exp_parts_f32(x, &n);
    float scale = bt_from_bits_f32(0x3f800000u + n);
    return scale * q + (scale - 1.0f);
}

/* tanh |x| = e / (e + 2) with e = e^2|x| - 1, which keeps its precision near zero; then the sign. */
BT_INLINE float bt_tanh_f32(float x)
{
    uint32_t sign = bt_bits_f32(x) & 0x80000000u;
    float a = bt_from_bits_f32(bt_bits_f32(x) ^ sign);
    float y = 1.0f;
    if (!(a >= 9.02f)) { /* from there on it rounds to 1 */
        uint32_t n;
        float q = bt_exp_parts_f32(a + a, &n);
        float scale = bt_from_bits_f32(0x3f800000u + n);
        float e = scale * q + (scale - 1.0f);
        y = e / (e + 2.0f);
    }
    return bt_from_bits_f32(bt_bits_f32(y) | sign);
}

BT_INLINE float bt_sigmoid_f32(float x)
{
    return 1.0f / (1.0f + bt_exp_f32(-x));
}

#endif
