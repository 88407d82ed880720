/* solve: y[m] with a[m] y[m] = b[m], for `count` matrices of n <= 4 rows
 * det:   y[m] = the determinant of x[m]
 * by Gauss with partial pivoting. A singular matrix gives infinities and NaN. */
#ifndef BT_SOLVE_H
#define BT_SOLVE_H

#include "../bt.h"

typedef struct {
    int32_t count;
    int32_t n;
    int32_t columns;
    int32_t b_step; /* from one right side to the next: n * columns, or 0 if all have the same */
} bt_solve_f32;

typedef struct {
    int32_t count;
    int32_t n;
} bt_det_f32;

#ifndef BT_INLINE_KERNELS
/* b and y may be the same if b_step is not 0; so may a and y if columns <= n. */
void bt_solve_f32_ref(const bt_solve_f32 *p, const float *a, const float *b, float *y);
/* x and y may be the same. */
void bt_det_f32_ref(const bt_det_f32 *p, const float *x, float *y);
#endif

#endif
