/* qconv2d with weights of 4 bits, one group without pool, window after window. */
#include "../int4.h"
#include "int4_windows.h"

BT_KERNEL void bt_qconv2d4_windows_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                                       const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y,
                                       void *scratch)
{
    bt_int4_windows(bt_int4_outputs_ref, bt_int4_copy_ref, p, x, weight, bias, multiplier, y, (int8_t *)scratch);
}
