#include "qconv2d.h"

/* The weight of channel `o` at a tap. */
BT_INLINE int32_t bt_int4_at(const BT_FLASH uint8_t *weight, int32_t o, int32_t tap, int32_t taps)
{
    const int32_t both = weight[(o >> 1) * taps + tap];
    return (o & 1 ? both >> 4 : both & 15) - 8;
}

/* As bt_qconv2d_ref_dot. */
BT_INLINE int32_t bt_qconv2d4_dot(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight, int32_t o,
                                  int32_t top, int32_t left)
{
    const int32_t depth = p->in / p->groups, taps = p->kernel_h * p->kernel_w * depth;
    int32_t sum = 0, tap = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            int32_t h = top + kh * p->dilation_h;
            int32_t w = left + kw * p->dilation_w;
            int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            for (int32_t i = 0; i < depth; i++, tap++)
                sum += (inside ? x[(h * p->in_w + w) * p->in + i] : p->x_zero) * bt_int4_at(weight, o, tap, taps);
        }
    }
    return sum;
}

BT_KERNEL void bt_qconv2d4_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                               const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    const int32_t depth = p->in / p->groups, group = p->out / p->groups;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t o = 0; o < p->out; o++) {
                    int32_t max = INT32_MIN;
                    for (int32_t ph = h * p->pool_h; ph < (h + 1) * p->pool_h; ph++) {
                        for (int32_t pw = w * p->pool_w; pw < (w + 1) * p->pool_w; pw++) {
                            int32_t sum = bt_qconv2d4_dot(p, x + o / group * depth, weight, o,
                                                          ph * p->stride_h - p->pad_top,
                                                          pw * p->stride_w - p->pad_left);
                            max = sum > max ? sum : max;
                        }
                    }
                    *y++ = bt_requantize(max + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
                }
            }
        }
    }
}
