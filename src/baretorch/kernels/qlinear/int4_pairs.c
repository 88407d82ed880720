/* qlinear with weights of 4 bits and an even number of inputs, for cores without DSP extension. */
#include "../int4_pairs.h"
#include "qlinear.h"

BT_KERNEL void bt_qlinear4_pairs(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                 const int32_t *multiplier, int8_t *y)
{
    const bt_int4_layer layer = { p->in, p->out, p->shift, p->zero, p->lo, p->hi };
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out)
        bt_int4_outputs_pairs(&layer, x, (const uint8_t *)weight, bias, multiplier, y);
}
