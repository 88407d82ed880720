/* conv2d with weights of 16 bits for Arm cores with a single-precision FPU. */
#include "../half_fpu.h"
#include "rows.h"

BT_KERNEL void bt_conv2d_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                      float *y)
{
    bt_conv2d_rows(p, x, (const float *)(const void *)weight, bias, y, p->in, bt_half_fpu_dense, bt_fpu_limit);
}

BT_KERNEL void bt_conv2d_pool_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight,
                                           const float *bias, float *y, void *scratch)
{
    bt_conv2d_pool(p, x, (const float *)(const void *)weight, bias, y, (float *)scratch, bt_half_fpu_dense,
                   bt_fpu_limit, bt_fpu_larger);
}

BT_KERNEL void bt_conv2d_depthwise_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight,
                                                const float *bias, float *y)
{
    bt_conv2d_rows(p, x, (const float *)(const void *)weight, bias, y, 1, bt_half_fpu_depthwise, bt_fpu_limit);
}
