#include "../half.h"
#include "conv2d.h"

/* As ref.c, with weights of 16 bits. `x` is the image from its group's first channel on. */
BT_INLINE float bt_conv2d_half_f32_ref_dot(const bt_conv2d_f32 *p, const float *x, const BT_FLASH int16_t *weight,
                                           int32_t top, int32_t left)
{
    const int32_t depth = p->in / p->groups;
    float sum = 0.0f;
    for (int32_t kh = 0, h = top; kh < p->kernel_h; kh++, h += p->dilation_h) {
        for (int32_t kw = 0, w = left; kw < p->kernel_w; kw++, w += p->dilation_w, weight += depth) {
            if (h < 0 || h >= p->in_h || w < 0 || w >= p->in_w)
                continue;
            for (int32_t i = 0; i < depth; i++)
                sum += x[(h * p->in_w + w) * p->in + i] * bt_half(weight[i]);
        }
    }
    return sum;
}

BT_KERNEL void bt_conv2d_half_f32_ref(const bt_conv2d_f32 *p, const float *x, const BT_FLASH int16_t *weight,
                                      const BT_FLASH float *bias, float *y)
{
    const int32_t depth = p->in / p->groups, group = p->out / p->groups;
    const int32_t taps = p->kernel_h * p->kernel_w * depth;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t o = 0; o < p->out; o++) {
                    float max = -BT_INF;
                    for (int32_t ph = 0; ph < p->pool_h; ph++)
                        for (int32_t pw = 0; pw < p->pool_w; pw++)
                            max = bt_max_f32(max, bt_conv2d_half_f32_ref_dot(p, x + o / group * depth, weight + o * taps,
                                                                        (h * p->pool_h + ph) * p->stride_h - p->pad_top,
                                                                        (w * p->pool_w + pw) * p->stride_w -
                                                                            p->pad_left));
                    *y++ = bt_clamp_f32(max + bias[o], p->lo, p->hi);
                }
            }
        }
    }
}
