/* conv2d for computers. */
#include "../wide.h"
#include "rows.h"

BT_KERNEL void bt_conv2d_f32_wide(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, p->in, bt_wide_dense, bt_wide_limit);
}

BT_KERNEL void bt_conv2d_pool_f32_wide(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                       float *y, void *scratch)
{
    bt_conv2d_pool(p, x, weight, bias, y, (float *)scratch, bt_wide_dense, bt_wide_limit, bt_wide_larger);
}

BT_KERNEL void bt_conv2d_depthwise_f32_wide(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                            const float *bias, float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, 1, bt_wide_depthwise, bt_wide_limit);
}
