/* Partial sums of a convolution, whose input channels are taken in parts:
 *
 *   y[n, h, w, o] = sums[n, h, w, o] + the sum over kh, kw and i < in of x[.., .., i] * weight[o, kh, kw, i]
 *
 * with x_zero outside of the image; x points to the part's first channel. The first part begins with bias[o] instead of
 * sums. Pixels of x are x_stride bytes apart, those of sums and y y_stride elements. sums may be y itself, else they are
 * apart. */
#ifndef BT_QSUMS_H
#define BT_QSUMS_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t x_stride;
    int32_t out_h, out_w, out;
    int32_t y_stride;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t x_zero;
} bt_qsums;

/* Outputs from sums: y = requantize(the largest of a pool's window, with multiplier[o]). Pixels of sums and y are
 * `stride` elements apart. */
typedef struct {
    int32_t batch;
    int32_t in_h, in_w;
    int32_t out_h, out_w, out;
    int32_t stride;
    int32_t pool_h, pool_w;
    int32_t shift;
    int32_t zero;
    int32_t lo;
    int32_t hi;
} bt_qfrom_sums;

#ifndef BT_INLINE_KERNELS
/* weight: [out][kernel_h][kernel_w][in] */
void bt_qsums_ref(const bt_qsums *p, const int8_t *x, const int32_t *sums, const BT_FLASH int8_t *weight, int32_t *y);
void bt_qsums_first_ref(const bt_qsums *p, const int8_t *x, const BT_FLASH int8_t *weight, const BT_FLASH int32_t *bias,
                        int32_t *y);

/* weight: words of four inputs, [out / 4][kernel_h * kernel_w * in / 4][4], both counts rounded up. Windows of one pixel,
 * all inside of the image, of fours of inputs, need no scratch. */
void bt_qsums_pixels_xcv(const bt_qsums *p, const int8_t *x, const int32_t *sums, const int32_t *weight, int32_t *y);
void bt_qsums_pixels_first_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                               int32_t *y);
void bt_qsums_xcv(const bt_qsums *p, const int8_t *x, const int32_t *sums, const int32_t *weight, int32_t *y,
                  void *scratch);
void bt_qsums_first_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, const int32_t *bias, int32_t *y,
                        void *scratch);

void bt_qfrom_sums_ref(const bt_qfrom_sums *p, const int32_t *sums, const BT_FLASH int32_t *multiplier, int8_t *y);
#endif

#endif
