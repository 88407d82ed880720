/* qlinear for CV32E40P: 1.8 products per cycle in the inner loop. */
#include "../xcv.h"
#include "qlinear.h"

BT_INLINE void bt_qlinear_rows_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                   int8_t *row, int narrow)
{
    const bt_xcv_layer layer = { (p->in + 3) >> 2, p->out, bt_xcv_rule_of(narrow, p->shift, p->zero, p->lo, p->hi),
                                 constants };
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        bt_xcv_fill(bt_xcv_copy(row, x, p->in), 0, -p->in & 3);
        bt_xcv_window(&layer, row, y);
    }
}

/* scratch: a row of x, rounded up to words */
BT_KERNEL void bt_qlinear_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch)
{
    bt_qlinear_rows_xcv(p, x, constants, y, (int8_t *)scratch, 0);
}

BT_KERNEL void bt_qlinear_narrow_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     void *scratch)
{
    bt_qlinear_rows_xcv(p, x, constants, y, (int8_t *)scratch, 1);
}
