/* matmul for Arm cores with a single-precision FPU. */
#include "matrices.h"

#include "columns.h"

BT_INLINE void bt_matmul_one_columns(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t i = 0; i < p->m; i++) {
        float *row = y + i * p->y_step[3];
        bt_fpu_columns(a + i * p->a_step[3], p->a_step[4], b, p->b_step[3], row, p->n, p->k);
        bt_fpu_limit(row, p->n, p->lo, p->hi);
    }
}

BT_INLINE void bt_matmul_one_dots(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t i = 0; i < p->m; i++)
        for (int32_t j = 0; j < p->n; j++) {
            float sum = bt_fpu_dot(0.0f, a + i * p->a_step[3], b + j * p->b_step[4], p->k);
            y[i * p->y_step[3] + j * p->y_step[4]] = bt_clamp_f32(sum, p->lo, p->hi);
        }
}

BT_KERNEL void bt_matmul_columns_f32_fpu(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    bt_matmul_all_f32(bt_matmul_one_columns, p, a, b, y);
}

BT_KERNEL void bt_matmul_dots_f32_fpu(const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    bt_matmul_all_f32(bt_matmul_one_dots, p, a, b, y);
}
