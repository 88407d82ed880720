#include "solve.h"

enum { BT_SOLVE_LARGEST = 4 };

BT_INLINE float bt_size_f32(float v)
{
    return v < 0.0f ? -v : v;
}

/* Exchanges two rows. */
BT_INLINE void bt_exchange_f32(float *a, float *b, int32_t length)
{
    for (int32_t i = 0; i < length; i++) {
        float v = a[i];
        a[i] = b[i];
        b[i] = v;
    }
}

/* Makes the n x n matrix a upper triangular, and applies the same row operations to b. Returns the sign of the
 * exchanges. */
BT_SHARED float bt_eliminate_f32(float *a, float *b, int32_t n, int32_t columns)
{
    float sign = 1.0f;
    for (int32_t c = 0; c < n; c++) {
        int32_t best = c;
        for (int32_t r = c + 1; r < n; r++)
            if (bt_size_f32(a[r * n + c]) > bt_size_f32(a[best * n + c]))
                best = r;
        if (best != c) {
            bt_exchange_f32(a + c * n, a + best * n, n);
            bt_exchange_f32(b + c * columns, b + best * columns, columns);
            sign = -sign;
        }
        for (int32_t r = c + 1; r < n; r++) {
            if (a[r * n + c] == 0.0f)
                continue; /* 0 / 0 would spoil rows that are done */
            float factor = a[r * n + c] / a[c * n + c];
            for (int32_t i = c; i < n; i++)
                a[r * n + i] -= factor * a[c * n + i];
            for (int32_t i = 0; i < columns; i++)
                b[r * columns + i] -= factor * b[c * columns + i];
        }
    }
    return sign;
}

BT_KERNEL void bt_solve_f32_ref(const bt_solve_f32 *p, const float *a, const float *b, float *y)
{
    const int32_t n = p->n, columns = p->columns;
    for (int32_t m = 0; m < p->count; m++, a += n * n, b += p->b_step, y += n * columns) {
        float matrix[BT_SOLVE_LARGEST * BT_SOLVE_LARGEST];
        for (int32_t i = 0; i < n * n; i++)
            matrix[i] = a[i];
        for (int32_t i = 0; i < n * columns; i++)
            y[i] = b[i];
        bt_eliminate_f32(matrix, y, n, columns);
        for (int32_t r = n - 1; r >= 0; r--) {
            for (int32_t i = 0; i < columns; i++) {
                float sum = y[r * columns + i];
                for (int32_t k = r + 1; k < n; k++)
                    sum -= matrix[r * n + k] * y[k * columns + i];
                y[r * columns + i] = sum / matrix[r * n + r];
            }
        }
    }
}

BT_KERNEL void bt_det_f32_ref(const bt_det_f32 *p, const float *x, float *y)
{
    const int32_t n = p->n;
    for (int32_t m = 0; m < p->count; m++, x += n * n) {
        float matrix[BT_SOLVE_LARGEST * BT_SOLVE_LARGEST];
        for (int32_t i = 0; i < n * n; i++)
            matrix[i] = x[i];
        float det = bt_eliminate_f32(matrix, matrix, n, 0);
        for (int32_t r = 0; r < n; r++)
            det *= matrix[r * n + r];
        y[m] = det;
    }
}
