#include "qconv2d16.h"

/* As bt_qconv2d_ref_dot. */
BT_INLINE int32_t bt_qconv2d16_dot(const bt_qconv2d *p, const int16_t *x, const BT_FLASH int8_t *weight, int32_t top,
                                   int32_t left)
{
    int32_t depth = p->in / p->groups;
    int32_t sum = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        for (int32_t kw = 0; kw < p->kernel_w; kw++, weight += depth) {
            int32_t h = top + kh * p->dilation_h;
            int32_t w = left + kw * p->dilation_w;
            if (h >= 0 && h < p->in_h && w >= 0 && w < p->in_w) {
                for (int32_t i = 0; i < depth; i++)
                    sum += (int32_t)x[(h * p->in_w + w) * p->in + i] * weight[i];
            }
        }
    }
    return sum;
}

BT_KERNEL void bt_qconv2d16_ref(const bt_qconv2d *p, const int16_t *x, const BT_FLASH int8_t *weight,
                                const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int16_t *y)
{
    const int32_t depth = p->in / p->groups, group = p->out / p->groups;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t o = 0; o < p->out; o++) {
                    const int32_t sum = bt_qconv2d16_dot(p, x + o / group * depth,
                                                         weight + o * p->kernel_h * p->kernel_w * depth,
                                                         h * p->stride_h - p->pad_top, w * p->stride_w - p->pad_left);
                    const int32_t acc = (sum + bias[o]) * (INT32_C(1) << p->shift);
                    *y++ = (int16_t)bt_clamp_i32(bt_scale(acc, multiplier[o], 0), p->lo, p->hi);
                }
            }
        }
    }
}
