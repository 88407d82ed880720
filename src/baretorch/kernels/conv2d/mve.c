/* conv2d for Arm cores with Helium (MVE). */
#include "../mve.h"
#include "rows.h"

BT_SHARED void bt_conv2d_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, p->in, bt_mve_dense, bt_mve_limit);
}

BT_SHARED void bt_conv2d_back_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y)
{
    bt_conv2d_back(p, x, weight, bias, y, 2, bt_mve_dense, bt_mve_limit);
}

BT_SHARED void bt_conv2d_pool_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y, float *part)
{
    bt_conv2d_pool(p, x, weight, bias, y, part, bt_mve_dense, bt_mve_limit, bt_mve_larger);
}

BT_SHARED void bt_conv2d_depthwise_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                       float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, 1, bt_mve_depthwise, bt_mve_limit);
}

BT_KERNEL void bt_conv2d_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y)
{
    bt_conv2d_mve(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_back_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                      float *y)
{
    bt_conv2d_back_mve(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_pool_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                      float *y, void *scratch)
{
    bt_conv2d_pool_mve(p, x, weight, bias, y, (float *)scratch);
}

BT_KERNEL void bt_conv2d_depthwise_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                           const float *bias, float *y)
{
    bt_conv2d_depthwise_mve(p, x, weight, bias, y);
}
