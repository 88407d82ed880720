/* The walk over the outputs of a transposed convolution, around a function that adds up one tap. */
#ifndef BT_QCONV_TRANSPOSE2D_WALK_H
#define BT_QCONV_TRANSPOSE2D_WALK_H

#include "qconv_transpose2d.h"

/* sum + the products of x - zero and weight */
typedef int32_t bt_qconv_transpose2d_add(int32_t sum, const int8_t *x, const BT_FLASH int8_t *weight, int32_t depth,
                                         int32_t zero);

/* The first tap that meets an output: one whose distance from it the stride divides; `taps` if none does. */
BT_INLINE int32_t bt_qconv_transpose2d_first(int32_t at, int32_t taps, int32_t dilation, int32_t stride)
{
    int32_t tap = 0;
    while (tap < taps && (at - tap * dilation) % stride != 0)
        tap++;
    return tap;
}

/* The sum of one output channel at (h, w); kh and kw are the first taps that meet it. */
BT_INLINE int32_t bt_qconv_transpose2d_dot(bt_qconv_transpose2d_add *add, const bt_qconv_transpose2d *p,
                                           const int8_t *x, const BT_FLASH int8_t *weight, int32_t h, int32_t w,
                                           int32_t kh, int32_t first)
{
    const int32_t depth = p->in / p->groups;
    int32_t sum = 0;
    for (; kh < p->kernel_h; kh += p->step_h) {
        const int32_t ih = (h - kh * p->dilation_h) / p->stride_h;
        if (h < kh * p->dilation_h || ih >= p->in_h)
            continue;
        for (int32_t kw = first; kw < p->kernel_w; kw += p->step_w) {
            const int32_t iw = (w - kw * p->dilation_w) / p->stride_w;
            if (w < kw * p->dilation_w || iw >= p->in_w)
                continue;
            sum = add(sum, x + (ih * p->in_w + iw) * p->in, weight + (kh * p->kernel_w + kw) * depth, depth,
                      p->x_zero);
        }
    }
    return sum;
}

BT_INLINE void bt_qconv_transpose2d_all(bt_qconv_transpose2d_add *add, const bt_qconv_transpose2d *p, const int8_t *x,
                                        const BT_FLASH int8_t *weight, const BT_FLASH int32_t *bias,
                                        const BT_FLASH int32_t *multiplier, int8_t *y)
{
    const int32_t depth = p->in / p->groups, group = p->out / p->groups;
    const int32_t taps = p->kernel_h * p->kernel_w * depth;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = p->pad_top; h < p->pad_top + p->out_h; h++) {
            const int32_t kh = bt_qconv_transpose2d_first(h, p->kernel_h, p->dilation_h, p->stride_h);
            for (int32_t w = p->pad_left; w < p->pad_left + p->out_w; w++) {
                const int32_t kw = bt_qconv_transpose2d_first(w, p->kernel_w, p->dilation_w, p->stride_w);
                for (int32_t o = 0; o < p->out; o++) {
                    const int32_t sum =
                        bt_qconv_transpose2d_dot(add, p, x + o / group * depth, weight + o * taps, h, w, kh, kw);
                    *y++ = bt_requantize(sum + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
                }
            }
        }
    }
}

#endif
