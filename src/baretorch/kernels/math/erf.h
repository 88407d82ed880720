/* The error function for float, without libm and without double precision.
 *
 * Largest error over all floats (tests/ops/test_math.py measures it):
 *
 *     bt_erf_f32      3.5 ULP
 */
#ifndef BT_ERF_H
#define BT_ERF_H

#include "round.h"

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

#endif
