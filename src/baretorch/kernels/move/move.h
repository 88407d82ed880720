/* Copies blocks of bytes: y[o, i] = x[o, i] for o < outer, i < count, each `bytes` long. */
#ifndef BT_MOVE_H
#define BT_MOVE_H

#include "../bt.h"

typedef struct {
    int32_t outer;
    int32_t count;
    int32_t bytes;
    int32_t x_start; /* of the first block, in bytes; the same for y */
    int32_t x_outer; /* bytes from one outer index to the next */
    int32_t x_step;  /* bytes from one block to the next */
    int32_t y_start;
    int32_t y_outer;
    int32_t y_step;
} bt_move;

#ifndef BT_INLINE_KERNELS
void bt_move_ref(const bt_move *p, const void *x, void *y);
#endif

#endif
