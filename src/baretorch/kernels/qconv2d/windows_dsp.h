/* Windows of qconv2d as halfwords, for cores with the DSP extension. */
#ifndef BT_QCONV2D_WINDOWS_DSP_H
#define BT_QCONV2D_WINDOWS_DSP_H

#include "../dsp.h"
#include "qconv2d.h"

/* Expand `count` bytes, a multiple of four, into every `step`-th word. */
BT_INLINE int32_t *bt_qconv2d_expand(int32_t *to, int32_t step, const int8_t *from, int32_t count)
{
    BT_UNROLL_4
    for (int32_t i = 0; i < count; i += 4) {
        const int32_t word = bt_load4(from + i);
        to[0] = bt_even_bytes(word);
        to[step] = bt_odd_bytes(word);
        to += 2 * step;
    }
    return to;
}

/* The window at (top, left), which may be anywhere, as bytes. */
BT_INLINE void bt_qconv2d_gather(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int8_t *to)
{
    const int32_t width = p->dilation_w == 1 ? p->kernel_w : 1; /* columns side by side */
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = top + kh * p->dilation_h;
        const int rows = h >= 0 && h < p->in_h;
        for (int32_t kw = 0; kw < p->kernel_w; kw += width) {
            int32_t w = left + kw * p->dilation_w;
            const int8_t *from = x + (h * p->in_w + w) * p->in;
            if (rows && w >= 0 && w + width <= p->in_w) {
                bt_copy_bytes(to, from, width * p->in);
                to += width * p->in;
                continue;
            }
            for (int32_t end = w + width; w < end; w++, from += p->in, to += p->in) {
                if (rows && w >= 0 && w < p->in_w)
                    bt_copy_bytes(to, from, p->in);
                else
                    bt_fill_bytes(to, p->x_zero, p->in);
            }
        }
    }
}

/* The window at (top, left) as halfwords in every `step`-th word; taps are rounded up to a multiple of four, with
 * anything in them. `bytes`: room for as many bytes, unless the kernel is 1x1 on channels in fours without padding. */
BT_INLINE void bt_qconv2d_window(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int32_t *to,
                                 int32_t step, int8_t *bytes)
{
    const int32_t row = p->kernel_w * p->in;
    const int32_t bottom = top + (p->kernel_h - 1) * p->dilation_h;
    const int dense = row % 4 == 0 && (p->kernel_w == 1 || p->dilation_w == 1);
    if (dense && top >= 0 && bottom < p->in_h && left >= 0 && left + p->kernel_w <= p->in_w) {
        const int8_t *from = x + (top * p->in_w + left) * p->in;
        for (int32_t kh = 0; kh < p->kernel_h; kh++, from += p->dilation_h * p->in_w * p->in)
            to = bt_qconv2d_expand(to, step, from, row);
    } else {
        bt_qconv2d_gather(p, x, top, left, bytes);
        bt_qconv2d_expand(to, step, bytes, (p->kernel_h * row + 3) & ~3);
    }
}

#endif
