/* y[n, h, w, o] = requantize(bias[o] + sum of (x[n, ih, iw, g * (in / groups) + i] - x_zero) * weight[o, kh, kw, i])
 * over all i, and over all ih, iw, kh, kw with
 *     ih * stride_h + kh * dilation_h == h + pad_top   and   iw * stride_w + kw * dilation_w == w + pad_left
 * where g is the group of o. Of the taps kh that meet an output, each is step_h after the one before; of kw, step_w. */
#ifndef BT_QCONV_TRANSPOSE2D_H
#define BT_QCONV_TRANSPOSE2D_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t step_h, step_w; /* stride / gcd(stride, dilation) */
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t groups;
    int32_t shift;
    int32_t x_zero;
    int32_t zero;
    int32_t lo;
    int32_t hi;
} bt_qconv_transpose2d;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][in], weight: [out][kernel_h][kernel_w][in / groups], y: [batch][out_h][out_w][out] */
void bt_qconv_transpose2d_ref(const bt_qconv_transpose2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                              const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);

/* Four channels of a group at a time, so there are four or more. */
void bt_qconv_transpose2d_dsp(const bt_qconv_transpose2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                              const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);
#endif

#endif
