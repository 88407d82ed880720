/* Between float32 and int16 with fractional bits. */
#ifndef BT_FIXED_POINT_H
#define BT_FIXED_POINT_H

#include "../bt.h"

typedef struct {
    int32_t count;
    float factor; /* 2^bits; from_fixed: 2^-bits */
} bt_fixed_point;

#ifndef BT_INLINE_KERNELS
/* y = x * factor, rounded half to even and limited; NaN gives 0 */
void bt_to_fixed_ref(const bt_fixed_point *p, const float *x, int16_t *y);
/* y = x * factor */
void bt_from_fixed_ref(const bt_fixed_point *p, const int16_t *x, float *y);
#endif

#endif
