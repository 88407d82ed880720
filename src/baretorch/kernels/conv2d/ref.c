#include "conv2d.h"

/* The sum for one output: `x` is the image from its group's first channel on, `weight` that of the output's
 * channel; (top, left) is where the window starts and may be outside of the image. */
BT_INLINE float bt_conv2d_f32_ref_dot(const bt_conv2d_f32 *p, const float *x, const BT_FLASH float *weight, int32_t top,
                                      int32_t left)
{
    int32_t depth = p->in / p->groups;
    float sum = 0.0f;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        int32_t h = top + kh * p->dilation_h;
        if (h < 0 || h >= p->in_h)
            continue;
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            int32_t w = left + kw * p->dilation_w;
            if (w < 0 || w >= p->in_w)
                continue;
            for (int32_t i = 0; i < depth; i++)
                sum += x[(h * p->in_w + w) * p->in + i] * weight[(kh * p->kernel_w + kw) * depth + i];
        }
    }
    return sum;
}

/* Pixels of y are *y_stride apart, which is p->out itself where nothing is cut. */
BT_INLINE void bt_conv2d_f32_ref_any(const bt_conv2d_f32 *p, const int32_t *y_stride, const float *x,
                                     const BT_FLASH float *weight, const BT_FLASH float *bias, float *y)
{
    int32_t depth = p->in / p->groups;
    int32_t group = p->out / p->groups; /* output channels that read the same input channels */
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t o = 0; o < p->out; o++) {
                    float max = -BT_INF;
                    for (int32_t ph = h * p->pool_h; ph < (h + 1) * p->pool_h; ph++)
                        for (int32_t pw = w * p->pool_w; pw < (w + 1) * p->pool_w; pw++)
                            max = bt_max_f32(max, bt_conv2d_f32_ref_dot(p, x + o / group * depth,
                                                                        weight + o * p->kernel_h * p->kernel_w * depth,
                                                                        ph * p->stride_h - p->pad_top,
                                                                        pw * p->stride_w - p->pad_left));
                    *y++ = bt_clamp_f32(max + bias[o], p->lo, p->hi);
                }
                y += *y_stride - p->out;
            }
        }
    }
}

BT_KERNEL void bt_conv2d_f32_ref(const bt_conv2d_f32 *p, const float *x, const BT_FLASH float *weight,
                                 const BT_FLASH float *bias, float *y)
{
    bt_conv2d_f32_ref_any(p, &p->out, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_channels_f32_ref(const bt_conv2d_channels_f32 *p, const float *x, const BT_FLASH float *weight,
                                          const BT_FLASH float *bias, float *y)
{
    bt_conv2d_f32_ref_any(&p->layer, &p->y_stride, x, weight, bias, y);
}
