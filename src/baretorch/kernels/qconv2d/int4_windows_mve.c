/* qconv2d with weights of 4 bits, one group without pool, for Arm cores with Helium. */
#include "../int4_mve.h"
#include "int4_windows.h"

BT_KERNEL void bt_qconv2d4_windows_mve(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                                       const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_int4_windows(bt_int4_outputs_mve, bt_int4_copy_mve, p, x, weight, bias, multiplier, y, (int8_t *)scratch);
}
