/* The shared parts of kernels for Arm cores with Helium that multiply two activations. */
#ifndef BT_DOT_MVE_H
#define BT_DOT_MVE_H

#include <arm_mve.h>

#include "int8.h"

/* The sum of n products of stored numbers; the sums of both correct for the zero points. */
BT_INLINE int32_t bt_mve_dot(int32_t n, const int8_t *a, int32_t a_zero, const int8_t *b, int32_t b_zero)
{
    int32_t sum = n * a_zero * b_zero, a_sum = 0, b_sum = 0;
    for (int32_t left = n; left > 0; left -= 16, a += 16, b += 16) {
        const mve_pred16_t there = vctp8q((uint32_t)left);
        const int8x16_t u = vldrbq_z_s8(a, there), v = vldrbq_z_s8(b, there);
        sum = vmladavaq_s8(sum, u, v);
        a_sum = vaddvaq_s8(a_sum, u);
        b_sum = vaddvaq_s8(b_sum, v);
    }
    return sum - b_zero * a_sum - a_zero * b_sum;
}

/* Four sums, requantized, to as many bytes as are there. */
BT_INLINE void bt_mve_store_four(int32x4_t sum, int32_t shift, int32_t multiplier, int32_t zero, int32_t lo, int32_t hi,
                                 int8_t *y, mve_pred16_t there)
{
    int32x4_t v = vrmulhq_s32(vshlq_r_s32(sum, shift), vdupq_n_s32(multiplier));
    v = vminq_s32(vmaxq_s32(vaddq_n_s32(v, zero), vdupq_n_s32(lo)), vdupq_n_s32(hi));
    vstrbq_p_s32(y, v, there);
}

#endif
