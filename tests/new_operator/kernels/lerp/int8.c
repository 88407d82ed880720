#include "lerp.h"

BT_KERNEL void bt_qlerp_ref(const bt_qlerp *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int8_t)bt_clamp_i32((a[i] * p->a_factor + b[i] * p->b_factor + p->offset) >> p->shift, -128, 127);
}
