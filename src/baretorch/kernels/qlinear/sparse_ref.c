#include "qlinear.h"

BT_KERNEL void bt_qlinear_sparse_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                     const BT_FLASH uint8_t *steps, const BT_FLASH int16_t *counts,
                                     const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in) {
        const BT_FLASH int8_t *w = weight;
        const BT_FLASH uint8_t *step = steps;
        for (int32_t o = 0; o < p->out; o++) {
            const BT_FLASH uint8_t *end = step + counts[o];
            const int8_t *at = x;
            int32_t acc = bias[o];
            for (; step != end; step++, w += 4) {
                at += 4 * *step;
                acc += at[0] * w[0]; /* one by one: an int may have 16 bits */
                acc += at[1] * w[1];
                acc += at[2] * w[2];
                acc += at[3] * w[3];
            }
            *y++ = bt_requantize(acc, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
