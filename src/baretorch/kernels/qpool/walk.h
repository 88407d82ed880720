/* The walk over windows that the int8 pools share. */
#ifndef BT_QPOOL_WALK_H
#define BT_QPOOL_WALK_H

#include "qpool.h"

/* The part of a window inside the image. */
typedef struct {
    const int8_t *x; /* its first element */
    int32_t rows, columns;
    int32_t row_step; /* elements from a row to the next */
    int32_t pitch;    /* and from a pixel to the next */
    int32_t channels;
} bt_qwindow;

/* The first element inside of a side, and how many from there. */
BT_INLINE int32_t bt_inside(int32_t start, int32_t kernel, int32_t size, int32_t *first)
{
    const int32_t end = start + kernel < size ? start + kernel : size;
    *first = start > 0 ? start : 0;
    return end > *first ? end - *first : 0;
}

/* For every window, `each(p, &window, y)` writes the channels of one pixel; pixels are `step` apart. */
#define BT_QPOOL_WALK(type, p, step, each)                                                                          \
    type window =       {.row_step = (p)->in_w * (step), .pitch = (step), .channels = (p)->channels};               \
    for (int32_t n = 0; n < (p)->batch; n++, x += (p)->in_h * (p)->in_w * (step)) {                                 \
        for (int32_t h = 0; h < (p)->out_h; h++) {                                                                  \
            int32_t top, left;                                                                                      \
            window.rows = bt_inside(h * (p)->stride_h - (p)->pad_top, (p)->kernel_h, (p)->in_h, &top);              \
            for (int32_t w = 0; w < (p)->out_w; w++, y += (step)) {                                                 \
                window.columns = bt_inside(w * (p)->stride_w - (p)->pad_left, (p)->kernel_w, (p)->in_w, &left);     \
                window.x = x + (top * (p)->in_w + left) * (step);                                                   \
                each((p), &window, y);                                                                              \
            }                                                                                                       \
        }                                                                                                           \
    }

#define BT_QPOOL(symbol, params, each)                                                                              \
    BT_KERNEL void symbol(const params *p, const int8_t *x, int8_t *y)                                              \
    {                                                                                                               \
        BT_QPOOL_WALK(bt_qwindow, p, p->channels, each)                                                             \
    }

/* The same of some channels of wider images. */
#define BT_QPOOL_CHANNELS(symbol, params, each)                                                                     \
    BT_KERNEL void symbol(const params *p, const int8_t *x, int8_t *y)                                              \
    {                                                                                                               \
        BT_QPOOL_WALK(bt_qwindow, &p->layer, p->y_stride, each)                                                     \
    }

BT_INLINE void bt_qavg_channel(const bt_qavg_pool2d *p, const bt_qwindow *w, int32_t c, int8_t *y)
{
    int32_t sum = -w->rows * w->columns * p->x_zero;
    for (int32_t i = 0; i < w->rows; i++)
        for (int32_t j = 0; j < w->columns; j++)
            sum += w->x[i * w->row_step + j * w->pitch + c];
    y[c] = bt_requantize(sum, p->multiplier, p->shift, p->zero, -128, 127);
}

BT_INLINE void bt_qmax_channel(const bt_qwindow *w, int32_t c, int8_t *y)
{
    int8_t max = -128;
    for (int32_t i = 0; i < w->rows; i++) {
        for (int32_t j = 0; j < w->columns; j++) {
            const int8_t v = w->x[i * w->row_step + j * w->pitch + c];
            max = v > max ? v : max;
        }
    }
    y[c] = max;
}

#endif
