/* y[i, j, k, l, m, n] = x[i, j, k, l, m, n] over steps of either sign, each element a run of contiguous units.
 * A unit is 8, 16 or 32 bits; starts, steps and runs are counted in units. */
#ifndef BT_MOVE_H
#define BT_MOVE_H

#include "../bt.h"

typedef struct {
    int32_t shape[6];
    int32_t x_step[6]; /* 0 repeats, a negative step goes backwards */
    int32_t y_step[6];
    int32_t x_start;
    int32_t y_start;
    int32_t run;
} bt_move;

#ifndef BT_INLINE_KERNELS
void bt_move_8_ref(const bt_move *p, const void *x, void *y);
void bt_move_16_ref(const bt_move *p, const void *x, void *y);
void bt_move_32_ref(const bt_move *p, const void *x, void *y);
#endif

#endif
