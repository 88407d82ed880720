/* Inverse trigonometric functions and the length of a vector for float, without libm and without double precision.
 *
 * Largest error over all floats, of two arguments over pairs from all exponents (tests/ops/test_math.py measures it):
 *
 *     bt_asin_f32     2.5 ULP
 *     bt_acos_f32     1.5 ULP
 *     bt_atan_f32     1.5 ULP
 *     bt_atan2_f32    2 ULP
 *     bt_hypot_f32    2 ULP
 *
 * asin and acos of what is outside of [-1, 1] are NaN. atan2 has C's angles for zeros and infinities. */
#ifndef BT_ATAN_H
#define BT_ATAN_H

#include "round.h"

#define BT_HALF_PI 1.57079637f
#define BT_HALF_PI_LOW -4.37113883e-8f /* the rest of pi / 2 */

/* The angle of a vector with sides x, y >= 0 above the x axis: the arc tangent of a number up to 1, or of its
 * reciprocal. */
BT_INLINE float bt_angle_f32(float y, float x)
{
    float shorter = y > x ? x : y, longer = y > x ? y : x;
    float t = longer == 0.0f ? 0.0f : shorter == longer ? 1.0f : shorter / longer;
    float z = t * t;
    float p = -1.82718469e-3f; /* minimax for (atan t - t) / t^3 in z = t^2 */
    p = p * z + 1.10643152e-2f;
    p = p * z - 3.14554684e-2f;
    p = p * z + 5.82343191e-2f;
    p = p * z - 8.4194459e-2f;
    p = p * z + 1.09575719e-1f;
    p = p * z - 1.42652452e-1f;
    p = p * z + 1.99986383e-1f;
    p = p * z - 3.33333015e-1f;
    float angle = p * (z * t) + t;
    return y > x ? BT_HALF_PI - (angle - BT_HALF_PI_LOW) : angle;
}

BT_INLINE float bt_atan_f32(float x)
{
    if (x != x)
        return x;
    return bt_with_sign_f32(bt_angle_f32(bt_abs_f32(x), 1.0f), x);
}

BT_INLINE float bt_atan2_f32(float y, float x)
{
    if (x != x || y != y)
        return BT_NAN;
    float angle = bt_angle_f32(bt_abs_f32(y), bt_abs_f32(x));
    if ((bt_bits_f32(x) >> 31) != 0u)
        angle = 2.0f * BT_HALF_PI - (angle - 2.0f * BT_HALF_PI_LOW);
    return bt_with_sign_f32(angle, y);
}

/* asin s for s from 0 to 1/2, z being s^2 */
BT_INLINE float bt_asin_of_f32(float s, float z)
{
    float p = 4.22185473e-2f; /* minimax for (asin s - s) / s^3 in z */
    p = p * z + 2.41476111e-2f;
    p = p * z + 4.5477096e-2f;
    p = p * z + 7.49524161e-2f;
    p = p * z + 1.66667536e-1f;
    return p * (z * s) + s;
}

/* Beyond 1/2: asin a = pi / 2 - 2 asin sqrt((1 - a) / 2), where 1 - a is exact. */
BT_INLINE float bt_asin_f32(float x)
{
    float a = bt_abs_f32(x), y;
    if (a <= 0.5f) {
        y = bt_asin_of_f32(a, a * a);
    } else {
        float z = (1.0f - a) * 0.5f;
        y = BT_HALF_PI - (2.0f * bt_asin_of_f32(bt_sqrt_f32(z), z) - BT_HALF_PI_LOW);
    }
    return bt_with_sign_f32(y, x);
}

BT_INLINE float bt_acos_f32(float x)
{
    float a = bt_abs_f32(x);
    if (a <= 0.5f)
        return BT_HALF_PI - (bt_with_sign_f32(bt_asin_of_f32(a, a * a), x) - BT_HALF_PI_LOW);
    float z = (1.0f - a) * 0.5f;
    float y = 2.0f * bt_asin_of_f32(bt_sqrt_f32(z), z);
    return x < 0.0f ? 2.0f * BT_HALF_PI - (y - 2.0f * BT_HALF_PI_LOW) : y;
}

/* sqrt(x^2 + y^2) that overflows and underflows only where the result does. */
BT_INLINE float bt_hypot_f32(float x, float y)
{
    float a = bt_abs_f32(x), b = bt_abs_f32(y);
    if (a == BT_INF || b == BT_INF)
        return BT_INF; /* even if the other is NaN */
    float shorter = a > b ? b : a, longer = a > b ? a : b;
    if (longer == 0.0f)
        return shorter; /* 0, or NaN */
    float t = shorter / longer;
    return longer * bt_sqrt_f32(t * t + 1.0f);
}

#endif
