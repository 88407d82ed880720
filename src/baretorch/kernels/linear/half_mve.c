/* linear with weights of 16 bits for Arm cores with Helium (MVE): one window per row of x. */
#include "linear.h"

#include "../half_mve.h"

BT_KERNEL void bt_linear_half_f32_mve(const bt_linear_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                      float *y)
{
    const bt_windows windows = {.rows = 1, .inputs = p->in, .x_next = p->in, .weights = p->in, .out = p->out};
    bt_half_mve_dense(&windows, x, (const float *)(const void *)weight, bias, y, p->batch);
    bt_mve_limit(y, p->batch * p->out, p->lo, p->hi);
}
