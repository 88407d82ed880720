#include "lerp.h"

BT_KERNEL void bt_lerp_f32_ref(const bt_lerp_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = a[i] + p->weight * (b[i] - a[i]);
}
