#include "qconv2d.h"

/* The sum for one output: `x` is the image from its group's first channel on, `weight` that of the output's
 * channel; (top, left) is where the window starts and may be outside of the image. */
BT_INLINE int32_t bt_qconv2d_ref_dot(const bt_qconv2d *p, const int8_t *x, const BT_FLASH int8_t *weight, int32_t top,
                                     int32_t left)
{
    int32_t depth = p->in / p->groups;
    int32_t sum = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            int32_t h = top + kh * p->dilation_h;
            int32_t w = left + kw * p->dilation_w;
            int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            for (int32_t i = 0; i < depth; i++)
                sum += (inside ? x[(h * p->in_w + w) * p->in + i] : p->x_zero) * *weight++;
        }
    }
    return sum;
}

/* Pixels of y are *y_stride apart, which is p->out itself where nothing is cut. */
BT_INLINE void bt_qconv2d_ref_any(const bt_qconv2d *p, const int32_t *y_stride, const int8_t *x,
                                  const BT_FLASH int8_t *weight, const BT_FLASH int32_t *bias,
                                  const BT_FLASH int32_t *multiplier, int8_t *y)
{
    int32_t depth = p->in / p->groups;
    int32_t group = p->out / p->groups; /* output channels that read the same input channels */
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t o = 0; o < p->out; o++) {
                    int32_t max = INT32_MIN;
                    for (int32_t ph = h * p->pool_h; ph < (h + 1) * p->pool_h; ph++) {
                        for (int32_t pw = w * p->pool_w; pw < (w + 1) * p->pool_w; pw++) {
                            int32_t sum = bt_qconv2d_ref_dot(
                                p, x + o / group * depth, weight + o * p->kernel_h * p->kernel_w * depth,
                                ph * p->stride_h - p->pad_top, pw * p->stride_w - p->pad_left);
                            max = sum > max ? sum : max;
                        }
                    }
                    *y++ = bt_requantize(max + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
                }
                y += *y_stride - p->out;
            }
        }
    }
}

BT_KERNEL void bt_qconv2d_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                              const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    bt_qconv2d_ref_any(p, &p->out, x, weight, bias, multiplier, y);
}

BT_KERNEL void bt_qconv2d_channels_ref(const bt_qconv2d_channels *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                       const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    bt_qconv2d_ref_any(&p->layer, &p->y_stride, x, weight, bias, multiplier, y);
}
