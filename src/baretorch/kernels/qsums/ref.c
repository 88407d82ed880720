#include "qsums.h"

/* The products of one output; (top, left) is where the window starts and may be outside of the image. */
BT_INLINE int32_t bt_qsums_ref_dot(const bt_qsums *p, const int8_t *x, const BT_FLASH int8_t *weight, int32_t top,
                                   int32_t left)
{
    int32_t sum = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int32_t h = top + kh * p->dilation_h, w = left + kw * p->dilation_w;
            const int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            for (int32_t i = 0; i < p->in; i++)
                sum += (inside ? x[(h * p->in_w + w) * p->x_stride + i] : p->x_zero) * *weight++;
        }
    }
    return sum;
}

/* Adds the products to y. */
BT_INLINE void bt_qsums_ref_add(const bt_qsums *p, const int8_t *x, const BT_FLASH int8_t *weight, int32_t *y)
{
    const int32_t taps = p->kernel_h * p->kernel_w * p->in;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->x_stride)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++, y += p->y_stride)
                for (int32_t o = 0; o < p->out; o++)
                    y[o] += bt_qsums_ref_dot(p, x, weight + o * taps, h * p->stride_h - p->pad_top,
                                             w * p->stride_w - p->pad_left);
}

BT_KERNEL void bt_qsums_ref(const bt_qsums *p, const int8_t *x, const int32_t *sums, const BT_FLASH int8_t *weight,
                            int32_t *y)
{
    const int32_t pixels = p->batch * p->out_h * p->out_w;
    for (int32_t i = 0; i < pixels; i++)
        for (int32_t o = 0; o < p->out; o++)
            y[i * p->y_stride + o] = sums[i * p->y_stride + o];
    bt_qsums_ref_add(p, x, weight, y);
}

BT_KERNEL void bt_qsums_first_ref(const bt_qsums *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                  const BT_FLASH int32_t *bias, int32_t *y)
{
    const int32_t pixels = p->batch * p->out_h * p->out_w;
    for (int32_t i = 0; i < pixels; i++)
        for (int32_t o = 0; o < p->out; o++)
            y[i * p->y_stride + o] = bias[o];
    bt_qsums_ref_add(p, x, weight, y);
}
