/* y[n, h, w, c] = the maximum or the average of x over the window at (h * stride_h - pad_top, w * stride_w - pad_left) */
#ifndef BT_POOL_H
#define BT_POOL_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
} bt_max_pool2d_f32;

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_bottom, pad_left, pad_right;
    int32_t count_include_pad; /* whether padding counts in the divisor */
    int32_t divisor;           /* fixed divisor, or 0 */
} bt_avg_pool2d_f32;

/* Windows that cover the image: number h of out_h begins at row h * in_h / out_h, rounded down, and ends before row
 * (h + 1) * in_h / out_h, rounded up; the same for columns. */
typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
} bt_adaptive_pool2d_f32;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][channels], y: [batch][out_h][out_w][channels] */
void bt_max_pool2d_f32_ref(const bt_max_pool2d_f32 *p, const float *x, float *y);
void bt_avg_pool2d_f32_ref(const bt_avg_pool2d_f32 *p, const float *x, float *y);
void bt_avg_pool2d_f32_fpu(const bt_avg_pool2d_f32 *p, const float *x, float *y); /* no window leaves the image */
void bt_adaptive_max_pool2d_f32_ref(const bt_adaptive_pool2d_f32 *p, const float *x, float *y);
void bt_adaptive_avg_pool2d_f32_ref(const bt_adaptive_pool2d_f32 *p, const float *x, float *y);
#endif

#endif
