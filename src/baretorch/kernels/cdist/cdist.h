/* Distances between every row of a and every row of b: y[n, i, j] = |a[n, i] - b[n, j]|. */
#ifndef BT_CDIST_H
#define BT_CDIST_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t rows;    /* of a */
    int32_t columns; /* rows of b */
    int32_t length;
    float order;     /* of the norm; 0 counts differences */
} bt_cdist_f32;

#ifndef BT_INLINE_KERNELS
void bt_cdist_f32_ref(const bt_cdist_f32 *p, const float *a, const float *b, float *y);
#endif

#endif
