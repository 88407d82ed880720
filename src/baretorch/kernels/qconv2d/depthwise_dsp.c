/* qconv2d, depthwise, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * Four channels at a time over the whole image: their weights are expanded to halfwords once, in scratch; then a tap of
 * a position is one load of four bytes, two extensions, one load of weights and four multiplies. Inside the image all
 * taps have fixed offsets; at its border a tap outside reads a word of zero points instead.
 *
 * Channels go through the whole image one after the other, so input and output must be apart. */
#include "depthwise_dsp.h"

BT_INLINE void bt_qconv2d_expand_bytes(const bt_qconv2d *p, const void *weight, int32_t c, int32_t *to)
{
    const int8_t *from = (const int8_t *)weight + c;
    for (int32_t t = 0; t < p->kernel_h * p->kernel_w; t++, from += p->in, to += 2) {
        const int32_t word = bt_load4(from);
        to[0] = bt_even_bytes(word);
        to[1] = bt_odd_bytes(word);
    }
}

BT_KERNEL void bt_qconv2d_depthwise_dsp(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                        const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_qconv2d_depthwise(bt_qconv2d_expand_bytes, p, x, weight, bias, multiplier, y, scratch);
}
