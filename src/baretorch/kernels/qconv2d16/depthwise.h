/* Depthwise qconv2d16, pixel after pixel, around a function that makes all channels of one. Only the part of
 * a window within the image is read: outside there are zeros.
 *
 * Constants are one stream of words: for each block of channels, of which the last may repeat some of the one before,
 * biases, multipliers and weights as bytes [kernel_h][kernel_w][channels]. */
#ifndef BT_QCONV2D16_DEPTHWISE_H
#define BT_QCONV2D16_DEPTHWISE_H

#include "qconv2d16.h"

/* The part of a window within the image. */
typedef struct {
    const int16_t *x;      /* its first channel */
    int32_t first;         /* tap, of all of them */
    int32_t rows, columns; /* of taps */
    int32_t step;          /* bytes from one column to the next */
    int32_t row_step;      /* numbers from the end of a row to the next */
    int32_t skip;          /* taps that are left out between rows */
} bt_qconv2d16_view;

/* All channels of a pixel. */
typedef void bt_qconv2d16_each(const bt_qconv2d *p, const bt_qconv2d16_view *view, const int32_t *constants,
                               int16_t *y);

typedef struct {
    int32_t first, count;
} bt_qconv2d16_taps;

/* Those of `kernel`, the first of which meets `at`, that meet 0 to size - 1. */
BT_INLINE bt_qconv2d16_taps bt_qconv2d16_within(int32_t at, int32_t kernel, int32_t dilation, int32_t size)
{
    const int32_t first = at < 0 ? (dilation - 1 - at) / dilation : 0;
    const int32_t end = at < size ? (size - at + dilation - 1) / dilation : 0;
    const int32_t count = (end < kernel ? end : kernel) - first;
    const bt_qconv2d16_taps taps = { first, count > 0 ? count : 0 };
    return taps;
}

BT_INLINE void bt_qconv2d16_pixels(bt_qconv2d16_each *each, const bt_qconv2d *p, const int16_t *x,
                                   const int32_t *constants, int16_t *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            const int32_t top = h * p->stride_h - p->pad_top;
            const bt_qconv2d16_taps rows = bt_qconv2d16_within(top, p->kernel_h, p->dilation_h, p->in_h);
            for (int32_t w = 0; w < p->out_w; w++, y += p->out) {
                const int32_t left = w * p->stride_w - p->pad_left;
                const bt_qconv2d16_taps columns = bt_qconv2d16_within(left, p->kernel_w, p->dilation_w, p->in_w);
                const int32_t row = top + rows.first * p->dilation_h, column = left + columns.first * p->dilation_w;
                const int32_t seen = columns.count ? rows.count : 0;
                const bt_qconv2d16_view view = { seen ? x + (row * p->in_w + column) * p->in : x,
                                                 rows.first * p->kernel_w + columns.first,
                                                 seen,
                                                 columns.count,
                                                 2 * p->dilation_w * p->in,
                                                 (p->dilation_h * p->in_w - columns.count * p->dilation_w) * p->in,
                                                 p->kernel_w - columns.count };
                each(p, &view, constants, y);
            }
        }
    }
}

#endif
