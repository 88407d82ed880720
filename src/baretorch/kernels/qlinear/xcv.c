/* qlinear for CV32E40P: 1.8 products per cycle in the inner loop. */
#include "../xcv.h"
#include "qlinear.h"

/* scratch: a row of x, rounded up to words */
BT_KERNEL void bt_qlinear_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y, void *scratch)
{
    const bt_xcv_layer layer = { (p->in + 3) >> 2, p->out, p->shift, p->zero, p->lo, p->hi, weight, bias, multiplier };
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        bt_xcv_fill(bt_xcv_copy((int8_t *)scratch, x, p->in), 0, -p->in & 3);
        bt_xcv_window(&layer, (const int8_t *)scratch, y);
    }
}
