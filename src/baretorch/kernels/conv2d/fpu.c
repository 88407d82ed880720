/* conv2d for Arm cores with a single-precision FPU. */
#include "../fpu.h"
#include "rows.h"

BT_SHARED void bt_conv2d_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, p->in, bt_fpu_dense, bt_fpu_limit);
}

BT_SHARED void bt_conv2d_channels_fpu(const bt_conv2d_channels_f32 *p, const float *x, const float *weight,
                                      const float *bias, float *y)
{
    bt_conv2d_channels(p, x, weight, bias, y, bt_fpu_dense, bt_fpu_limit);
}

BT_SHARED void bt_conv2d_back_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y)
{
    bt_conv2d_back(p, x, weight, bias, y, 2, bt_fpu_dense, bt_fpu_limit);
}

BT_SHARED void bt_conv2d_pool_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y, float *part)
{
    bt_conv2d_pool(p, x, weight, bias, y, part, bt_fpu_dense, bt_fpu_limit, bt_fpu_larger);
}

BT_SHARED void bt_conv2d_depthwise_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                       float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, 1, bt_fpu_depthwise, bt_fpu_limit);
}

BT_KERNEL void bt_conv2d_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y)
{
    bt_conv2d_fpu(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_channels_f32_fpu(const bt_conv2d_channels_f32 *p, const float *x, const float *weight,
                                          const float *bias, float *y)
{
    bt_conv2d_channels_fpu(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_back_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                      float *y)
{
    bt_conv2d_back_fpu(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_pool_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                      float *y, void *scratch)
{
    bt_conv2d_pool_fpu(p, x, weight, bias, y, (float *)scratch);
}

BT_KERNEL void bt_conv2d_depthwise_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                           const float *bias, float *y)
{
    bt_conv2d_depthwise_fpu(p, x, weight, bias, y);
}
