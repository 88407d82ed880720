/* conv2d for computers. */
#include "../vectors.h"
#include "rows.h"

BT_KERNEL void bt_conv2d_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, p->in, bt_vectors_dense, bt_vectors_limit);
}

BT_KERNEL void bt_conv2d_pool_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                          const float *bias, float *y, void *scratch)
{
    bt_conv2d_pool(p, x, weight, bias, y, (float *)scratch, bt_vectors_dense, bt_vectors_limit, bt_vectors_larger);
}

BT_KERNEL void bt_conv2d_depthwise_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                            const float *bias, float *y)
{
    bt_conv2d_rows(p, x, weight, bias, y, 1, bt_vectors_depthwise, bt_vectors_limit);
}
