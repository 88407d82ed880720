/* Convolutions with weights of 4 bits, one group without pool: every window is a row of inputs, in scratch. */
#ifndef BT_QCONV2D_INT4_WINDOWS_H
#define BT_QCONV2D_INT4_WINDOWS_H

#include "../int4.h"
#include "qconv2d.h"

BT_INLINE void bt_int4_windows(bt_int4_outputs *outputs, bt_int4_copy *copy, const bt_qconv2d *p, const int8_t *x,
                               const BT_FLASH uint8_t *weight, const BT_FLASH int32_t *bias,
                               const BT_FLASH int32_t *multiplier, int8_t *y, int8_t *window)
{
    const int32_t taps = p->kernel_h * p->kernel_w * p->in;
    const bt_int4_layer layer = { taps, p->out, p->shift, p->zero, p->lo, p->hi };
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t position = 0; position < p->out_h * p->out_w; position++, y += p->out) {
            const int32_t top = position / p->out_w * p->stride_h - p->pad_top;
            const int32_t left = position % p->out_w * p->stride_w - p->pad_left;
            int8_t *to = window;
            for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                const int32_t h = top + kh * p->dilation_h;
                for (int32_t kw = 0; kw < p->kernel_w; kw++, to += p->in) {
                    const int32_t w = left + kw * p->dilation_w;
                    if (h >= 0 && h < p->in_h && w >= 0 && w < p->in_w) {
                        copy(to, x + (h * p->in_w + w) * p->in, p->in);
                    } else {
                        for (int32_t i = 0; i < p->in; i++)
                            to[i] = (int8_t)p->x_zero;
                    }
                }
            }
            outputs(&layer, window, weight, bias, multiplier, y);
        }
    }
}

#endif
