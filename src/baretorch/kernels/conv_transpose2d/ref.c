#include "conv_transpose2d.h"

/* Return which input meets the tap that is `distance` after it; -1 if none does. */
BT_INLINE int32_t bt_conv_transpose2d_source(int32_t distance, int32_t stride, int32_t size)
{
    int32_t at = distance / stride;
    return distance >= 0 && at * stride == distance && at < size ? at : -1;
}

/* Adds one tap at one place: y[o] += the products of the group's channels. */
BT_INLINE void bt_conv_transpose2d_f32_ref_tap(const bt_conv_transpose2d_f32 *p, const float *x,
                                               const BT_FLASH float *weight, float *y)
{
    int32_t depth = p->in / p->groups;
    int32_t group = p->out / p->groups; /* output channels that read the same input channels */
    for (int32_t g = 0; g < p->groups; g++, x += depth) {
        for (int32_t o = 0; o < group; o++, weight += depth) {
            float sum = 0.0f;
            for (int32_t i = 0; i < depth; i++)
                sum += x[i] * weight[i];
            *y++ += sum;
        }
    }
}

BT_KERNEL void bt_conv_transpose2d_f32_ref(const bt_conv_transpose2d_f32 *p, const float *x,
                                           const BT_FLASH float *weight, const BT_FLASH float *bias, float *y)
{
    int32_t tap = p->out * (p->in / p->groups);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = p->pad_top; h < p->pad_top + p->out_h; h++) {
            for (int32_t w = p->pad_left; w < p->pad_left + p->out_w; w++, y += p->out) {
                for (int32_t o = 0; o < p->out; o++)
                    y[o] = bias[o];
                for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                    int32_t ih = bt_conv_transpose2d_source(h - kh * p->dilation_h, p->stride_h, p->in_h);
                    if (ih < 0)
                        continue;
                    for (int32_t kw = 0; kw < p->kernel_w; kw++) {
                        int32_t iw = bt_conv_transpose2d_source(w - kw * p->dilation_w, p->stride_w, p->in_w);
                        if (iw >= 0)
                            bt_conv_transpose2d_f32_ref_tap(p, x + (ih * p->in_w + iw) * p->in,
                                                            weight + (kh * p->kernel_w + kw) * tap, y);
                    }
                }
                for (int32_t o = 0; o < p->out; o++)
                    y[o] = bt_clamp_f32(y[o], p->lo, p->hi);
            }
        }
    }
}
