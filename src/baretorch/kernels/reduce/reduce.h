/* y[o, i] = the mean over r of x[o, r, i] */
#ifndef BT_REDUCE_H
#define BT_REDUCE_H

#include "../bt.h"

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
} bt_reduce_f32;

#ifndef BT_INLINE_KERNELS
void bt_mean_f32_ref(const bt_reduce_f32 *p, const float *x, float *y);
#endif

#endif
