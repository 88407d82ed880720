#include "matrices.h"

BT_INLINE void bt_matmul_one_ref(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t i = 0; i < p->m; i++)
        for (int32_t j = 0; j < p->n; j++) {
            float sum = 0.0f;
            for (int32_t l = 0; l < p->k; l++)
                sum += a[i * p->a_step[3] + l * p->a_step[4]] * b[l * p->b_step[3] + j * p->b_step[4]];
            y[i * p->y_step[3] + j * p->y_step[4]] = bt_clamp_f32(sum, p->lo, p->hi);
        }
}

BT_KERNEL void bt_matmul_f32_ref(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    bt_matmul_all_f32(bt_matmul_one_ref, p, a, b, y);
}
