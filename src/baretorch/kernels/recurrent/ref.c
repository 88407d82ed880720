#include "layers.h"

BT_INLINE void bt_rows_f32_ref(const float *w, const float *x, const float *start, float *y, int32_t count, int32_t n)
{
    for (int32_t r = 0; r < count; r++) {
        float sum = start[r];
        for (int32_t i = 0; i < n; i++)
            sum += w[r * n + i] * x[i];
        y[r] = sum;
    }
}

BT_RECURRENT_KERNELS(ref, bt_rows_f32_ref)
