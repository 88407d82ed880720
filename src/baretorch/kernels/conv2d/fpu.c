/* conv2d for Arm cores with a single-precision FPU. */
#include "../fpu.h"
#include "rows.h"

BT_CONV2D_KERNELS(fpu)

BT_SHARED void bt_conv2d_channels_fpu(const bt_conv2d_channels_f32 *p, const float *x, const float *weight,
                                      const float *bias, float *y)
{
    bt_conv2d_channels(p, x, weight, bias, y, bt_fpu_dense, bt_fpu_limit);
}

BT_KERNEL void bt_conv2d_channels_f32_fpu(const bt_conv2d_channels_f32 *p, const float *x, const float *weight,
                                          const float *bias, float *y)
{
    bt_conv2d_channels_fpu(p, x, weight, bias, y);
}
