/* One element of each row of x[o, a, i] along a, chosen by the order of its values, and where it was.
 *
 * They take no memory. kth_value goes through a row some 3 log2(length) times, mode compares every element with every
 * other. */
#ifndef BT_ORDERED_H
#define BT_ORDERED_H

#include "../bt.h"

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
    int32_t k;     /* the place in ascending order, from 0, NaN being last; -1: the lower of the middle ones */
    int32_t quiet; /* for k = -1: 1 leaves NaN out; 0 gives the first NaN if there is one */
} bt_kth;

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
} bt_mode;

#ifndef BT_INLINE_KERNELS
#define BT_DECLARATIONS(type, T)                                                               \
    void bt_kth_value_##type##_ref(const bt_kth *p, const T *x, T *values, int64_t *indices);  \
    void bt_mode_##type##_ref(const bt_mode *p, const T *x, T *values, int64_t *indices);

BT_DECLARATIONS(f32, float)
BT_DECLARATIONS(s32, int32_t)
BT_DECLARATIONS(s64, int64_t)
#undef BT_DECLARATIONS
#endif

#endif
