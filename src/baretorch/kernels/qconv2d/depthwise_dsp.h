/* Depthwise convolutions on cores with the DSP extension, around a function that expands weights. */
#ifndef BT_QCONV2D_DEPTHWISE_DSP_H
#define BT_QCONV2D_DEPTHWISE_DSP_H

#include "../dsp.h"
#include "qconv2d.h"

typedef struct {
    int32_t c0, c1, c2, c3;
} bt_qconv2d_four;

BT_INLINE bt_qconv2d_four bt_qconv2d_tap(bt_qconv2d_four sums, const int8_t *x, const int32_t *w)
{
    const int32_t word = bt_load4(x);
    const int32_t even = bt_even_bytes(word);
    const int32_t odd = bt_odd_bytes(word);
    sums.c0 = bt_low(even, w[0], sums.c0);
    sums.c1 = bt_low(odd, w[1], sums.c1);
    sums.c2 = bt_high(even, w[0], sums.c2);
    sums.c3 = bt_high(odd, w[1], sums.c3);
    return sums;
}

BT_INLINE bt_qconv2d_four bt_qconv2d_inside(const bt_qconv2d *p, bt_qconv2d_four sums, const int8_t *x,
                                            const int32_t *w)
{
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        BT_UNROLL_8
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            sums = bt_qconv2d_tap(sums, x + kw * p->dilation_w * p->in, w);
            w += 2;
        }
        x += p->dilation_h * p->in_w * p->in;
    }
    return sums;
}

/* x: the channels' first row and column; outside: four zero points */
BT_INLINE bt_qconv2d_four bt_qconv2d_border(const bt_qconv2d *p, bt_qconv2d_four sums, const int8_t *x,
                                            const int32_t *w, int32_t top, int32_t left, const int8_t *outside)
{
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = top + kh * p->dilation_h;
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int32_t column = left + kw * p->dilation_w;
            const int within = h >= 0 && h < p->in_h && column >= 0 && column < p->in_w;
            sums = bt_qconv2d_tap(sums, within ? x + (h * p->in_w + column) * p->in : outside, w);
            w += 2;
        }
    }
    return sums;
}

/* The weights of four channels from c on as two words a tap: of channels 0 and 2, and of 1 and 3. */
typedef void bt_qconv2d_expanded(const bt_qconv2d *p, const void *weight, int32_t c, int32_t *to);

/* scratch: 8 bytes a tap, and 4 */
BT_INLINE void bt_qconv2d_depthwise(bt_qconv2d_expanded *expand, const bt_qconv2d *p, const int8_t *x,
                                    const void *weight, const int32_t *bias, const int32_t *multiplier, int8_t *y,
                                    void *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int32_t reach_h = (p->kernel_h - 1) * p->dilation_h;
    const int32_t reach_w = (p->kernel_w - 1) * p->dilation_w;
    int32_t *const expanded = (int32_t *)scratch;
    int32_t *const zeros = expanded + 2 * taps;
    *zeros = (int32_t)((uint32_t)(p->x_zero & 0xff) * 0x01010101u);
    for (int32_t block = 0; block < p->in; block += 4) {
        const int32_t c = block + 4 <= p->in ? block : p->in - 4; /* the last four may overlap those before */
        expand(p, weight, c, expanded);
        const int8_t *image = x + c;
        int8_t *out = y + c;
        for (int32_t n = 0; n < p->batch; n++) {
            for (int32_t h = 0; h < p->out_h; h++) {
                const int32_t top = h * p->stride_h - p->pad_top;
                const int rows = top >= 0 && top + reach_h < p->in_h;
                for (int32_t w = 0; w < p->out_w; w++) {
                    const int32_t left = w * p->stride_w - p->pad_left;
                    bt_qconv2d_four sums = { bias[c], bias[c + 1], bias[c + 2], bias[c + 3] };
                    if (rows && left >= 0 && left + reach_w < p->in_w)
                        sums = bt_qconv2d_inside(p, sums, image + (top * p->in_w + left) * p->in, expanded);
                    else
                        sums = bt_qconv2d_border(p, sums, image, expanded, top, left, (const int8_t *)zeros);
                    out[0] = bt_requantize(sums.c0, multiplier[c], p->shift, p->zero, p->lo, p->hi);
                    out[1] = bt_requantize(sums.c1, multiplier[c + 1], p->shift, p->zero, p->lo, p->hi);
                    out[2] = bt_requantize(sums.c2, multiplier[c + 2], p->shift, p->zero, p->lo, p->hi);
                    out[3] = bt_requantize(sums.c3, multiplier[c + 3], p->shift, p->zero, p->lo, p->hi);
                    out += p->in;
                }
            }
            image += p->in_h * p->in_w * p->in;
        }
    }
}

#endif
