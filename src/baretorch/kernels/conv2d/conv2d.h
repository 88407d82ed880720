/* c[n, h, w, o] = bias[o] + sum over kh, kw, i of x[n, h * stride_h - pad_top + kh * dilation_h,
 *                     w * stride_w - pad_left + kw * dilation_w, g * (in / groups) + i] * weight[o, kh, kw, i]
 * where g is the group of o, and x is 0 outside of its bounds;
 * y[n, h, w, o] = clamp(max of c over the pool_h x pool_w window at (h * pool_h, w * pool_w), lo, hi) */
#ifndef BT_CONV2D_H
#define BT_CONV2D_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out; /* of y: after the pool */
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t groups;
    int32_t pool_h, pool_w;
    float lo;
    float hi;
} bt_conv2d_f32;

/* Some output channels of a wider tensor: `layer` describes these alone. */
typedef struct {
    bt_conv2d_f32 layer;
    int32_t y_stride; /* from one pixel of y to the next */
} bt_conv2d_channels_f32;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][in], weight: [out][kernel_h][kernel_w][in / groups], y: [batch][out_h][out_w][out] */
void bt_conv2d_f32_ref(const bt_conv2d_f32 *p, const float *x, const BT_FLASH float *weight,
                       const BT_FLASH float *bias, float *y);

void bt_conv2d_channels_f32_ref(const bt_conv2d_channels_f32 *p, const float *x, const BT_FLASH float *weight,
                                const BT_FLASH float *bias, float *y);

/* For dilation_w of 1, or kernels one wide. weight: packed in eights, see windows.h.
 * pool: groups of 1; scratch: [pool_h][pool_w][out]. depthwise: groups and out that are in, no pool. */
void bt_conv2d_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_conv2d_pool_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                float *y, void *scratch);
void bt_conv2d_depthwise_f32_vectors(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y);
void bt_conv2d_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_conv2d_back_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_conv2d_channels_f32_fpu(const bt_conv2d_channels_f32 *p, const float *x, const float *weight,
                                const float *bias, float *y);
void bt_conv2d_pool_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y,
                            void *scratch);
void bt_conv2d_depthwise_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y);
void bt_conv2d_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_conv2d_back_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_conv2d_pool_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y,
                            void *scratch);
void bt_conv2d_depthwise_f32_mve(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y);

/* weight: halves, as bt_conv2d_f32_ref has floats; then halves in eights, see half_eights.h */
void bt_conv2d_half_f32_ref(const bt_conv2d_f32 *p, const float *x, const BT_FLASH int16_t *weight,
                            const BT_FLASH float *bias, float *y);
void bt_conv2d_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias, float *y);
void bt_conv2d_pool_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                 float *y, void *scratch);
void bt_conv2d_depthwise_half_f32_fpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                      float *y);
void bt_conv2d_half_f32_mve(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias, float *y);
void bt_conv2d_pool_half_f32_mve(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                 float *y, void *scratch);
void bt_conv2d_depthwise_half_f32_mve(const bt_conv2d_f32 *p, const float *x, const int32_t *weight, const float *bias,
                                      float *y);
#endif

#endif
