#include "../int4.h"
#include "qlinear.h"

BT_KERNEL void bt_qlinear4_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                               const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    const bt_int4_layer layer = { p->in, p->out, p->shift, p->zero, p->lo, p->hi };
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out)
        bt_int4_outputs_ref(&layer, x, weight, bias, multiplier, y);
}
