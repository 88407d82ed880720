/* y[.., i, j] = clamp(sum over l of a[.., i, l] * b[.., l, j], lo, hi)
 * over steps in elements, so that operands may be transposed and repeated without a copy. */
#ifndef BT_MATMUL_H
#define BT_MATMUL_H

#include "../bt.h"

/* Steps per dimension: three nested loops over matrices, then row and column. */
typedef struct {
    int32_t batch[3];
    int32_t m;
    int32_t k;
    int32_t n;
    int32_t a_step[5];
    int32_t b_step[5];
    int32_t y_step[5];
    float lo;
    float hi;
} bt_matmul_f32;

#ifndef BT_INLINE_KERNELS
void bt_matmul_f32_ref(const bt_matmul_f32 *p, const float *a, const float *b, float *y);

/* The rows of b and y are contiguous: the last step of both is 1. */
void bt_matmul_columns_f32_fpu(const bt_matmul_f32 *p, const float *a, const float *b, float *y);

/* The rows of a and the columns of b are contiguous: a_step[4] and b_step[3] are 1. */
void bt_matmul_dots_f32_fpu(const bt_matmul_f32 *p, const float *a, const float *b, float *y);
#endif

#endif
