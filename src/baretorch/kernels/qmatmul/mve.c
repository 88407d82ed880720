/* qmatmul for Arm cores with Helium: sixteen numbers of a column at a time where columns are contiguous, else eight
 * columns. */
#include "../dot_mve.h"
#include "qmatmul.h"

/* Up to eight columns whose rows are contiguous. */
BT_INLINE void bt_qmatmul_eight(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t count)
{
    const mve_pred16_t first = vctp32q((uint32_t)count), second = vctp32q((uint32_t)(count > 4 ? count - 4 : 0));
    int32x4_t low = vdupq_n_s32(0), high = low;
    int32_t a_sum = 0;
    for (int32_t l = 0; l < p->k; l++, a += p->a_step[4], b += p->b_step[3]) {
        const int32_t x = *a - p->a_zero;
        low = vmlaq_n_s32(low, vldrbq_z_s32(b, first), x);
        high = vmlaq_n_s32(high, vldrbq_z_s32(b + 4, second), x);
        a_sum += x;
    }
    const int32_t less = p->b_zero * a_sum;
    bt_mve_store_four(vsubq_n_s32(low, less), p->shift, p->multiplier, p->zero, p->lo, p->hi, y, first);
    bt_mve_store_four(vsubq_n_s32(high, less), p->shift, p->multiplier, p->zero, p->lo, p->hi, y + 4, second);
}

BT_INLINE void bt_qmatmul_one_mve(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->m; i++, a += p->a_step[3], y += p->y_step[3]) {
        if (p->b_step[3] == 1) {
            for (int32_t j = 0; j < p->n; j++)
                y[j * p->y_step[4]] = bt_requantize(bt_mve_dot(p->k, a, p->a_zero, b + j * p->b_step[4], p->b_zero),
                                                    p->multiplier, p->shift, p->zero, p->lo, p->hi);
        } else {
            for (int32_t j = 0; j < p->n; j += 8)
                bt_qmatmul_eight(p, a, b + j, y + j, p->n - j);
        }
    }
}

BT_KERNEL void bt_qmatmul_mve(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    BT_EACH_MATRIX(bt_qmatmul_one_mve, p);
}
