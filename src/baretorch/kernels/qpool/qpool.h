/* y[n, h, w, c] from x over the window at (h * stride_h - pad_top, w * stride_w - pad_left), as far as it is inside
 *
 * qavg: requantize(sum of x - x_zero)
 * qmax: the largest x; -128 if none */
#ifndef BT_QPOOL_H
#define BT_QPOOL_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t x_zero;
    int32_t multiplier, shift, zero;
} bt_qavg_pool2d;

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
} bt_qmax_pool2d;

/* Some channels of images that have more: pixels of x and of y are y_stride elements apart. */
typedef struct {
    bt_qavg_pool2d layer;
    int32_t y_stride;
} bt_qavg_pool2d_channels;

typedef struct {
    bt_qmax_pool2d layer;
    int32_t y_stride;
} bt_qmax_pool2d_channels;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][channels], y: [batch][out_h][out_w][channels] */
void bt_qavg_pool2d_ref(const bt_qavg_pool2d *p, const int8_t *x, int8_t *y);
void bt_qmax_pool2d_ref(const bt_qmax_pool2d *p, const int8_t *x, int8_t *y);

/* Four channels at a time, so there are four or more. The average's windows have 256 elements at most. */
void bt_qavg_pool2d_dsp(const bt_qavg_pool2d *p, const int8_t *x, int8_t *y);
void bt_qmax_pool2d_dsp(const bt_qmax_pool2d *p, const int8_t *x, int8_t *y);

/* The average's windows have 256 elements at most. */
void bt_qavg_pool2d_mve(const bt_qavg_pool2d *p, const int8_t *x, int8_t *y);
void bt_qmax_pool2d_mve(const bt_qmax_pool2d *p, const int8_t *x, int8_t *y);

/* Four channels at a time, so there are four or more. */
void bt_qavg_pool2d_xcv(const bt_qavg_pool2d *p, const int8_t *x, int8_t *y);
void bt_qmax_pool2d_xcv(const bt_qmax_pool2d *p, const int8_t *x, int8_t *y);
void bt_qavg_pool2d_channels_xcv(const bt_qavg_pool2d_channels *p, const int8_t *x, int8_t *y);
void bt_qmax_pool2d_channels_xcv(const bt_qmax_pool2d_channels *p, const int8_t *x, int8_t *y);
#endif

#endif
