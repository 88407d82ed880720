/* y[i] = |x[i]|, or its square, of complex numbers x[count, 2] */
#ifndef BT_MAGNITUDE_H
#define BT_MAGNITUDE_H

#include "../bt.h"

typedef struct {
    int32_t count;
    int32_t squared;
} bt_magnitude_f32;

#ifndef BT_INLINE_KERNELS
/* x and y may begin at the same place. */
void bt_magnitude_f32_ref(const bt_magnitude_f32 *p, const float *x, float *y);
#endif

#endif
