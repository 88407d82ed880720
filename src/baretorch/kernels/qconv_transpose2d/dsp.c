/* qconv_transpose2d for cores with the DSP extension (Cortex-M4, M7, M33): four channels at a time. */
#include "walk.h"

#include "../dsp.h"

BT_INLINE int32_t bt_qconv_transpose2d_add_dsp(int32_t sum, const int8_t *x, const BT_FLASH int8_t *weight,
                                               int32_t depth, int32_t zero)
{
    const int32_t less = (int32_t)((uint32_t)(-zero & 0xffff) * 0x00010001u);
    const int8_t *const end = x + (depth & ~3);
    while (x != end) {
        const int32_t x4 = bt_load4(x), w4 = bt_load4(weight);
        sum = bt_dual(bt_even_plus(less, x4), bt_even_bytes(w4), sum);
        sum = bt_dual(bt_odd_plus(less, x4), bt_odd_bytes(w4), sum);
        x += 4;
        weight += 4;
    }
    for (int32_t i = 0; i < (depth & 3); i++)
        sum += (x[i] - zero) * weight[i];
    return sum;
}

BT_KERNEL void bt_qconv_transpose2d_dsp(const bt_qconv_transpose2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                        const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    bt_qconv_transpose2d_all(bt_qconv_transpose2d_add_dsp, p, x, weight, bias, multiplier, y);
}
