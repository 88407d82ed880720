/* As depthwise_dsp.c, with weights of 4 bits: four channels share a halfword, with 8 added to each. */
#include "depthwise_dsp.h"

BT_INLINE void bt_qconv2d_expand_int4(const bt_qconv2d *p, const void *weight, int32_t c, int32_t *to)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int16_t *from = (const int16_t *)weight + (c + 3) / 4 * taps;
    for (int32_t t = 0; t < taps; t++, to += 2) {
        const int32_t four = from[t] & 0xffff;
        const int32_t even = (four & 15) - 8, odd = (four >> 4 & 15) - 8;
        to[0] = (even & 0xffff) | ((four >> 8 & 15) - 8) * 65536;
        to[1] = (odd & 0xffff) | ((four >> 12) - 8) * 65536;
    }
}

BT_KERNEL void bt_qconv2d_depthwise4_dsp(const bt_qconv2d *p, const int8_t *x, const int16_t *weight,
                                         const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_qconv2d_depthwise(bt_qconv2d_expand_int4, p, x, weight, bias, multiplier, y, scratch);
}
