/* The walk over windows of int16 images. */
#ifndef BT_QWIDE_WALK_H
#define BT_QWIDE_WALK_H

#include "qwide.h"

#include "../qpool/walk.h"

typedef struct {
    const int16_t *x;
    int32_t rows, columns;
    int32_t row_step;
    int32_t pitch;
    int32_t channels;
} bt_qwindow16; /* as bt_qwindow */

#define BT_QPOOL16(symbol, params, each)                                                                            \
    BT_KERNEL void symbol(const params *p, const int16_t *x, int16_t *y)                                            \
    {                                                                                                               \
        BT_QPOOL_WALK(bt_qwindow16, p, p->channels, each)                                                           \
    }

#endif
