/* y[n, h, w, o] = clamp(bias[o] + sum of x[n, ih, iw, g * (in / groups) + i] * weight[kh, kw, o, i], lo, hi)
 * over all i, and over all ih, iw, kh, kw with
 *     ih * stride_h + kh * dilation_h == h + pad_top   and   iw * stride_w + kw * dilation_w == w + pad_left
 * where g is the group of o */
#ifndef BT_CONV_TRANSPOSE2D_H
#define BT_CONV_TRANSPOSE2D_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t groups;
    float lo;
    float hi;
} bt_conv_transpose2d_f32;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][in], weight: [kernel_h][kernel_w][out][in / groups], y: [batch][out_h][out_w][out] */
void bt_conv_transpose2d_f32_ref(const bt_conv_transpose2d_f32 *p, const float *x, const BT_FLASH float *weight,
                                 const BT_FLASH float *bias, float *y);
#endif

#endif
