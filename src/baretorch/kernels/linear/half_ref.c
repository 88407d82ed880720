#include "../half.h"
#include "linear.h"

BT_KERNEL void bt_linear_half_f32_ref(const bt_linear_f32 *p, const float *x, const BT_FLASH int16_t *weight,
                                      const BT_FLASH float *bias, float *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in) {
        const BT_FLASH int16_t *w = weight;
        for (int32_t o = 0; o < p->out; o++) {
            float sum = bias[o];
            for (int32_t i = 0; i < p->in; i++)
                sum += x[i] * bt_half(*w++);
            *y++ = bt_clamp_f32(sum, p->lo, p->hi);
        }
    }
}
