/* linear for computers: one window per row of x. */
#include "linear.h"

#include "../vectors.h"

BT_KERNEL void bt_linear_f32_vectors(const bt_linear_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y)
{
    const bt_windows windows = {.rows = 1, .inputs = p->in, .x_next = p->in, .weights = p->in, .out = p->out};
    bt_vectors_dense(&windows, x, weight, bias, y, p->batch);
    bt_vectors_limit(y, p->batch * p->out, p->lo, p->hi);
}
