/* qconv2d with weights of 4 bits, one group without pool and windows of an even number of taps, for cores without DSP
 * extension. */
#include "../int4_pairs.h"
#include "int4_windows.h"

BT_KERNEL void bt_qconv2d4_pairs(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                 const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_int4_windows(bt_int4_outputs_pairs, bt_int4_copy_ref, p, x, (const uint8_t *)weight, bias, multiplier, y,
                    (int8_t *)scratch);
}
