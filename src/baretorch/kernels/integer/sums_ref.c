#include "integer.h"

/* The sum for one output: `x` is the image from its group's first channel on, `weight` that of the output's channel;
 * (top, left) is where the window starts and may be outside of the image. */
BT_INLINE int32_t bt_int_conv2d_dot(const bt_int_conv2d *p, const int8_t *x, const BT_FLASH int8_t *weight, int32_t top,
                                    int32_t left)
{
    const int32_t depth = p->in / p->groups;
    int32_t sum = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int32_t h = top + kh * p->dilation_h, w = left + kw * p->dilation_w;
            const int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            for (int32_t i = 0; i < depth; i++)
                sum += (inside ? x[(h * p->in_w + w) * p->in + i] : p->x_zero) * *weight++;
        }
    }
    return sum;
}

BT_KERNEL void bt_int_conv2d_ref(const bt_int_conv2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                 const BT_FLASH int32_t *bias, int32_t *y)
{
    const int32_t depth = p->in / p->groups, taps = p->kernel_h * p->kernel_w * depth;
    const int32_t group = p->out / p->groups; /* output channels that read the same input channels */
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++)
                for (int32_t o = 0; o < p->out; o++)
                    *y++ = bias[o] + bt_int_conv2d_dot(p, x + o / group * depth, weight + o * taps,
                                                       h * p->stride_h - p->pad_top, w * p->stride_w - p->pad_left);
}

BT_INLINE void bt_int_matmul_one(const bt_int_matmul *p, const int8_t *a, const int8_t *b, int32_t *y)
{
    for (int32_t i = 0; i < p->m; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            int32_t sum = 0;
            for (int32_t l = 0; l < p->k; l++)
                sum += (a[i * p->a_step[3] + l * p->a_step[4]] - p->a_zero) *
                       (b[l * p->b_step[3] + j * p->b_step[4]] - p->b_zero);
            y[i * p->y_step[3] + j * p->y_step[4]] = sum;
        }
    }
}

BT_KERNEL void bt_int_matmul_ref(const bt_int_matmul *p, const int8_t *a, const int8_t *b, int32_t *y)
{
    BT_EACH_MATRIX(bt_int_matmul_one, p);
}
