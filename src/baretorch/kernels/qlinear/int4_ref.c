#include "qlinear.h"

/* Two rows at a time: a byte has a weight of each, with 8 added, which the sum of the inputs takes back. */
BT_KERNEL void bt_qlinear4_ref(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                               const int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        const uint8_t *w = weight;
        int32_t start = 0;
        for (int32_t i = 0; i < p->in; i++)
            start -= 8 * x[i];
        for (int32_t o = 0; o < p->out; o += 2) {
            int32_t first = start, second = start;
            for (int32_t i = 0; i < p->in; i++, w++) {
                first += (*w & 15) * x[i];
                second += (*w >> 4) * x[i];
            }
            y[o] = bt_requantize(first + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
            if (o + 1 < p->out)
                y[o + 1] = bt_requantize(second + bias[o + 1], multiplier[o + 1], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
