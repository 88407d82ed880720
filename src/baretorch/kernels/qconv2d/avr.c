/* Each window is copied together first. */
#include "qconv2d.h"

#include "../fours_avr.h"

/* One row of a window, `inputs` of one pixel after the other; x_zero outside of the image. */
BT_INLINE int8_t *bt_qconv2d_avr_row(const bt_qconv2d *p, const int8_t *x, int16_t h, int16_t left, int8_t *to)
{
    const int16_t in = (int16_t)p->in, width = (int16_t)p->in_w;
    const int8_t outside = (int8_t)p->x_zero;
    const uint8_t there = h >= 0 && h < (int16_t)p->in_h;
    for (int16_t kw = 0, w = left; kw < (int16_t)p->kernel_w; kw++, w = (int16_t)(w + p->dilation_w)) {
        if (there && w >= 0 && w < width) {
            const int8_t *from = x + (uint16_t)(h * width + w) * (uint16_t)in;
            for (int16_t i = in; i > 0; i--)
                *to++ = *from++;
        } else {
            for (int16_t i = in; i > 0; i--)
                *to++ = outside;
        }
    }
    return to;
}

BT_KERNEL void bt_qconv2d_avr(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight, int8_t *y,
                              void *scratch)
{
    for (int16_t n = 0; n < (int16_t)p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int16_t top = (int16_t)-p->pad_top;
        for (int16_t h = 0; h < (int16_t)p->out_h; h++, top = (int16_t)(top + p->stride_h)) {
            int16_t left = (int16_t)-p->pad_left;
            for (int16_t w = 0; w < (int16_t)p->out_w; w++, left = (int16_t)(left + p->stride_w), y += p->out) {
                int8_t *to = (int8_t *)scratch;
                for (int16_t kh = 0, row = top; kh < (int16_t)p->kernel_h; kh++, row = (int16_t)(row + p->dilation_h))
                    to = bt_qconv2d_avr_row(p, x, row, left, to);
                bt_fours_avr s = {
                    .x = (const int8_t *)scratch,
                    .y = y,
                    .inputs = (uint16_t)(p->kernel_h * p->kernel_w * p->in),
                    .outputs = (uint8_t)p->out,
                    .zero = (uint8_t)(p->zero + 128),
                    .lo = (uint8_t)(p->lo + 128),
                    .hi = (uint8_t)(p->hi + 128),
                };
                bt_fours_avr_run(&s, weight);
            }
        }
    }
}
