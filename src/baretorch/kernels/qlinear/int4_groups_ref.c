#include "qlinear.h"

/* Two rows in a byte, as in ../int4.h. Here the 8 is taken back from each weight. */
BT_KERNEL void bt_qlinear4_groups_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                                      const BT_FLASH uint8_t *factors, const BT_FLASH int32_t *bias,
                                      const BT_FLASH int32_t *multiplier, int8_t *y)
{
    const int32_t groups = (p->in + 31) / 32;
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        for (int32_t o = 0; o < p->out; o++) {
            const BT_FLASH uint8_t *w = weight + (o >> 1) * p->in;
            const BT_FLASH uint8_t *factor = factors + (o >> 1) * groups * 2 + (o & 1);
            int32_t sum = bias[o];
            for (int32_t i = 0; i < p->in; factor += 2) {
                const int32_t end = p->in - i < 32 ? p->in : i + 32;
                int32_t part = 0;
                for (; i < end; i++)
                    part += ((o & 1 ? w[i] >> 4 : w[i] & 15) - 8) * x[i];
                sum += part * *factor;
            }
            y[o] = bt_requantize(sum, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
