/* qattention for Arm cores with Helium: sixteen products of a query and a key at a time, and eight channels of the
 * result in 7 instructions for each key. */
#include "../dot_mve.h"
#include "rows.h"

BT_INLINE int32_t bt_qattention_dot_mve(const bt_qattention *p, const int8_t *q, const int8_t *k)
{
    return bt_mve_dot(p->width, q, p->q_zero, k, p->k_zero);
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
        bt_mve_store_four(low, p->shift, p->multiplier, p->zero, -128, 127, y + e, first);
        bt_mve_store_four(high, p->shift, p->multiplier, p->zero, -128, 127, y + e + 4, second);
    }
}

BT_QATTENTION_KERNELS(mve, bt_qattention_dot_mve, bt_qattention_mix_mve)
