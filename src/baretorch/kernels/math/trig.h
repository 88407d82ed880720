/* Sine and cosine for float, without libm and without double precision.
 *
 * Largest error over all floats, however large (tests/ops/test_math.py measures it):
 *
 *     bt_sin_f32      3 ULP
 *     bt_cos_f32      3 ULP
 *
 * Infinities and NaN give NaN. */
#ifndef BT_TRIG_H
#define BT_TRIG_H

#include "round.h"

/* |x| - q pi / 2 for the whole q that makes it least; gives q modulo 4 too. The integer product of x and as many
 * bits of 2 / pi as matter at x's size loses nothing, so that the result is good for every float. */
BT_INLINE float bt_quadrant_f32(float x, uint32_t *q)
{
    static const uint32_t two_over_pi[] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                           0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits = bt_bits_f32(x) & 0x7fffffffu;
    *q = 0u;
    if (bits < 0x3f490fdbu) /* pi / 4 */
        return bt_from_bits_f32(bits);
    uint32_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
    uint32_t at = (bits >> 23) - 120u; /* where the bits that count begin */
    const uint32_t *w = two_over_pi + (at >> 5);
    uint32_t shift = at & 31u;
    uint32_t part[3];
    for (int i = 0; i < 3; i++)
        part[i] = shift == 0u ? w[i] : (w[i] << shift) | (w[i + 1] >> (32u - shift));
    uint64_t turns = ((uint64_t)(mantissa * part[0]) << 32) + (uint64_t)mantissa * part[1]
                     + (((uint64_t)mantissa * part[2]) >> 32); /* in units of 2^-62 quarter turns */
    uint64_t nearest = turns + ((uint64_t)1 << 61);
    *q = (uint32_t)(nearest >> 62);
    int64_t rest = (int64_t)(turns - (nearest & ((uint64_t)3 << 62)));
    return (float)rest * 3.40612160e-19f; /* pi / 2 / 2^62 */
}

/* sin of q quarter turns and |r| <= pi / 4 */
BT_INLINE float bt_sin_of_f32(float r, uint32_t q)
{
    float z = r * r, y;
    if ((q & 1u) != 0u) {
        y = 2.44323273e-5f; /* minimax for (cos r - 1 + r^2 / 2) / r^4 in z = r^2 */
        y = y * z - 1.38873095e-3f;
        y = y * z + 4.16666456e-2f;
        y = y * (z * z) + (1.0f - 0.5f * z);
    } else {
        y = -1.95182845e-4f; /* minimax for (sin r - r) / r^3 in z = r^2 */
        y = y * z + 8.33218917e-3f;
        y = y * z - 1.66666552e-1f;
        y = y * (z * r) + r;
    }
    return (q & 2u) != 0u ? -y : y;
}

BT_INLINE float bt_sin_f32(float x)
{
    if (!(bt_abs_f32(x) < BT_INF))
        return BT_NAN;
    uint32_t q;
    float r = bt_quadrant_f32(x, &q);
    return bt_from_bits_f32(bt_bits_f32(bt_sin_of_f32(r, q)) ^ (bt_bits_f32(x) & 0x80000000u));
}

BT_INLINE float bt_cos_f32(float x)
{
    if (!(bt_abs_f32(x) < BT_INF))
        return BT_NAN;
    uint32_t q;
    float r = bt_quadrant_f32(x, &q);
    return bt_sin_of_f32(r, q + 1u);
}

#endif
