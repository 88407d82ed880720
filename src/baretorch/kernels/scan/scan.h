/* Operators along one axis a of x[o, a, i] that look at its elements in order. */
#ifndef BT_SCAN_H
#define BT_SCAN_H

#include "../bt.h"

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
} bt_scan;

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
    int32_t k;
    int32_t largest; /* 1: the largest first; 0: the smallest first */
} bt_topk_f32;

#ifndef BT_INLINE_KERNELS
/* y[o, i]: the first a where x is largest, or smallest; NaN is both. length > 0 */
void bt_argmax_f32_ref(const bt_scan *p, const float *x, int64_t *y);
void bt_argmax_s32_ref(const bt_scan *p, const int32_t *x, int64_t *y);
void bt_argmax_s64_ref(const bt_scan *p, const int64_t *x, int64_t *y);
void bt_argmin_f32_ref(const bt_scan *p, const float *x, int64_t *y);
void bt_argmin_s32_ref(const bt_scan *p, const int32_t *x, int64_t *y);
void bt_argmin_s64_ref(const bt_scan *p, const int64_t *x, int64_t *y);

/* y[o, a, i]: the sum of x[o, 0 ... a, i]. Integers wrap around. */
void bt_cumsum_f32_ref(const bt_scan *p, const float *x, float *y);
void bt_cumsum_s32_ref(const bt_scan *p, const int32_t *x, int64_t *y);
void bt_cumsum_s64_ref(const bt_scan *p, const int64_t *x, int64_t *y);
void bt_cumsum_bool_ref(const bt_scan *p, const uint8_t *x, int64_t *y);

/* values[o, j, i] and where they were, for j < k <= length, in order. Equal elements keep their order, NaN counts as
 * largest. length * k steps at worst. */
void bt_topk_f32_ref(const bt_topk_f32 *p, const float *x, float *values, int64_t *indices);
#endif

#endif
