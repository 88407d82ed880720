#include "qlinear.h"

BT_KERNEL void bt_qlinear_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH int8_t *weight,
                              const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in) {
        for (int32_t o = 0; o < p->out; o++) {
            int32_t acc = bias[o];
            for (int32_t i = 0; i < p->in; i++)
                acc += x[i] * weight[o * p->in + i];
            *y++ = bt_requantize(acc, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
