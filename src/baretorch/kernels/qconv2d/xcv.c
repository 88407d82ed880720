/* qconv2d, one group, for CV32E40P.
 *
 * Two windows at a time are brought to scratch, each as one run of words; so padding is written once, words are aligned,
 * and pixels that follow each other can be written over the input. 2.2 products per cycle in the inner loop. */
#include "../xcv.h"
#include "qconv2d.h"

/* A window, the first tap of which is at (top, left), which may lie outside of the image; to whole words. */
BT_INLINE void bt_qconv2d_window_xcv(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int8_t *to)
{
    const int32_t run = p->kernel_w * p->in;
    const int together = p->dilation_w == 1 && left >= 0 && left + p->kernel_w <= p->in_w;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = top + kh * p->dilation_h;
        const int8_t *const row = x + h * p->in_w * p->in;
        if (h < 0 || h >= p->in_h) {
            to = bt_xcv_fill(to, p->x_zero, run);
        } else if (together) {
            to = bt_xcv_copy(to, row + left * p->in, run);
        } else {
            for (int32_t kw = 0; kw < p->kernel_w; kw++) {
                const int32_t w = left + kw * p->dilation_w;
                if (w < 0 || w >= p->in_w)
                    to = bt_xcv_fill(to, p->x_zero, p->in);
                else
                    to = bt_xcv_copy(to, row + w * p->in, p->in);
            }
        }
    }
    bt_xcv_fill(to, 0, -(p->kernel_h * run) & 3);
}

/* scratch: two windows, each rounded up to words */
BT_KERNEL void bt_qconv2d_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y, void *scratch)
{
    const bt_xcv_layer layer = { (p->kernel_h * p->kernel_w * p->in + 3) >> 2, p->out, p->shift, p->zero, p->lo, p->hi,
                                 weight, bias, multiplier };
    int8_t *const first = (int8_t *)scratch, *const second = first + 4 * layer.words;
    int odd = 0;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                bt_qconv2d_window_xcv(p, x, h * p->stride_h - p->pad_top, w * p->stride_w - p->pad_left,
                                      odd ? second : first);
                if (odd) {
                    bt_xcv_two_windows(&layer, first, second, y);
                    y += 2 * p->out;
                }
                odd = !odd;
            }
        }
    }
    if (odd)
        bt_xcv_window(&layer, first, y);
}
