/* Elements move and do not change. */
#ifndef BT_LAYOUT_H
#define BT_LAYOUT_H

#include "../bt.h"

/* y, of `shape` and contiguous, takes its elements from x by these steps. */
typedef struct {
    int32_t shape[6];
    int32_t step[6];
} bt_permute_f32;

/* y[i] = x[i - before] where that is inside x, else value; negative `before` crops. */
typedef struct {
    int32_t in[4];
    int32_t out[4];
    int32_t before[4];
    float value;
} bt_pad_f32;

#ifndef BT_INLINE_KERNELS
void bt_permute_f32_ref(const bt_permute_f32 *p, const float *x, float *y);
void bt_pad_f32_ref(const bt_pad_f32 *p, const float *x, float *y);
#endif

#endif
