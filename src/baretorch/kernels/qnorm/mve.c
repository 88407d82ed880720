/* Norms of rows for Arm cores with Helium: four results in 13 instructions, sums of sixteen numbers in 5. */
#include <arm_mve.h>

#include "inverse.h"

/* Sum and squares of a row as it is stored; the last vector is filled up with zeros. */
BT_INLINE uint32_t bt_qnorm_stored_sums(const int8_t *x, int32_t count, int32_t *sum)
{
    int32_t squares = 0;
    *sum = 0;
    for (; count > 0; count -= 16, x += 16) {
        const int8x16_t v = vldrbq_z_s8(x, vctp8q((uint32_t)count));
        *sum = vaddvaq_s8(*sum, v);
        squares = vmladavaq_s8(squares, v, v);
    }
    return (uint32_t)squares;
}

BT_KERNEL void bt_qnorm_mve(const bt_qnorm *p, const int8_t *x, const int32_t *weight, const int32_t *bias, int8_t *y)
{
    const int32_t lo = -128, hi = 127, zero = p->x_zero, count = p->depth;
    for (int32_t n = 0; n < p->batch; n++, x += count, y += count) {
        int32_t stored, factor;
        uint32_t squares = bt_qnorm_stored_sums(x, count, &stored);
        squares = squares - (uint32_t)(2 * zero * stored) + (uint32_t)(count * zero * zero);
        const int32_t sum = p->centred ? stored - count * zero : 0;
        const int32_t up = 23 - bt_qnorm_spread(p, count, sum, squares, &factor);
        const int32_t times = (int32_t)((uint32_t)count << up);
        const int32x4_t plus = vdupq_n_s32((int32_t)((uint32_t)(-count * zero - sum) << up));
        const int32x4_t high = vdupq_n_s32(factor * 512);
        for (int32_t k = 0; k < count; k += 4) {
            const mve_pred16_t there = vctp32q((uint32_t)(count - k));
            const int32x4_t centred = vmlaq_n_s32(plus, vldrbq_z_s32(x + k, there), times);
            const int32x4_t normal = vmulhq_s32(centred, high);
            int32x4_t v = vrmulhq_s32(normal, vldrwq_z_s32(weight + k, there));
            v = vshrq_n_s32(vaddq_s32(v, vldrwq_z_s32(bias + k, there)), 8);
            v = vminq_s32(vmaxq_s32(v, vdupq_n_s32(lo)), vdupq_n_s32(hi));
            vstrbq_p_s32(y + k, v, there);
        }
    }
}
