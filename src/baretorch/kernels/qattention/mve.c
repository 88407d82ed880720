/* qattention for Arm cores with Helium: sixteen products of a query and a key at a time, and eight channels of the
 * result in 7 instructions for each key. */
#include <arm_mve.h>

#include "rows.h"

/* Of what is stored; sums of both take the zero points back. */
BT_INLINE int32_t bt_qattention_dot_mve(const bt_qattention *p, const int8_t *q, const int8_t *k)
{
    int32_t sum = p->width * p->q_zero * p->k_zero, q_sum = 0, k_sum = 0;
    for (int32_t left = p->width; left > 0; left -= 16, q += 16, k += 16) {
        const mve_pred16_t there = vctp8q((uint32_t)left);
        const int8x16_t a = vldrbq_z_s8(q, there), b = vldrbq_z_s8(k, there);
        sum = vmladavaq_s8(sum, a, b);
        q_sum = vaddvaq_s8(q_sum, a);
        k_sum = vaddvaq_s8(k_sum, b);
    }
    return sum - p->k_zero * q_sum - p->q_zero * k_sum;
}

BT_INLINE void bt_qattention_store(const bt_qattention *p, int32x4_t sum, int8_t *y, mve_pred16_t there)
{
    int32x4_t v = vrmulhq_s32(vshlq_r_s32(sum, p->shift), vdupq_n_s32(p->multiplier));
    v = vminq_s32(vmaxq_s32(vaddq_n_s32(v, p->zero), vdupq_n_s32(-128)), vdupq_n_s32(127));
    vstrbq_p_s32(y, v, there);
}

BT_INLINE void bt_qattention_mix_mve(const bt_qattention *p, int32_t keys, const int32_t *w, int32_t total,
                                     const int8_t *v, int8_t *y)
{
    const int32x4_t start = vdupq_n_s32(-total * p->v_zero);
    for (int32_t e = 0; e < p->v_width; e += 8) {
        const mve_pred16_t first = vctp32q((uint32_t)(p->v_width - e));
        const mve_pred16_t second = vctp32q((uint32_t)(p->v_width - e > 4 ? p->v_width - e - 4 : 0));
        int32x4_t low = start, high = start;
        const int8_t *row = v + e;
        for (int32_t j = 0; j < keys; j++, row += p->v_step[3]) {
            low = vmlaq_n_s32(low, vldrbq_z_s32(row, first), w[j]);
            high = vmlaq_n_s32(high, vldrbq_z_s32(row + 4, second), w[j]);
        }
        bt_qattention_store(p, low, y + e, first);
        bt_qattention_store(p, high, y + e + 4, second);
    }
}

BT_QATTENTION_KERNELS(mve, bt_qattention_dot_mve, bt_qattention_mix_mve)
