#include "reduce.h"

BT_KERNEL void bt_mean_f32_ref(const bt_reduce_f32 *p, const float *x, float *y)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            float sum = 0.0f;
            for (int32_t r = 0; r < p->length; r++)
                sum += x[(o * p->length + r) * p->inner + i];
            *y++ = sum / (float)p->length;
        }
    }
}
