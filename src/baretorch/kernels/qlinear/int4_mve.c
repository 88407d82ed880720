/* qlinear with weights of 4 bits for Arm cores with Helium. */
#include "../int4_mve.h"
#include "qlinear.h"

BT_KERNEL void bt_qlinear4_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                               const int32_t *multiplier, int8_t *y)
{
    const bt_int4_layer layer = { p->in, p->out, p->shift, p->zero, p->lo, p->hi };
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out)
        bt_int4_outputs_mve(&layer, x, weight, bias, multiplier, y);
}
