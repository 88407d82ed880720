/* y[.., i, j] = requantize(sum over l of (a[.., i, l] - a_zero) * (b[.., l, j] - b_zero))
 * over steps in elements, so that operands may be transposed and repeated without a copy. */
#ifndef BT_QMATMUL_H
#define BT_QMATMUL_H

#include "../int8.h"
#include "../matrices.h"

/* Steps per dimension: three nested loops over matrices, then row and column. */
typedef struct {
    int32_t batch[3];
    int32_t m;
    int32_t k;
    int32_t n;
    int32_t a_step[5];
    int32_t b_step[5];
    int32_t y_step[5];
    int32_t a_zero, b_zero;
    int32_t multiplier;
    int32_t shift;
    int32_t zero;
    int32_t lo, hi;
} bt_qmatmul;

#ifndef BT_INLINE_KERNELS
void bt_qmatmul_ref(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y);

/* Columns of b are contiguous, or its rows are and have four numbers at least. scratch: a halfword for each of k,
 * rounded up to four */
void bt_qmatmul_dsp(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y, void *scratch);

/* Columns of b and rows of a are contiguous, or rows of b and of y are. */
void bt_qmatmul_mve(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y);
#endif

#endif
