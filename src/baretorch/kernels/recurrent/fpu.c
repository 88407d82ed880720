/* Recurrent layers for Arm cores with a single-precision FPU: eight rows at a time. */
#include "layers.h"

#include "../fpu.h"

BT_INLINE void bt_rows_f32_fpu(const float *w, const float *x, const float *start, float *y, int32_t count, int32_t n)
{
    const bt_windows window = {.rows = 1, .inputs = n, .weights = n, .out = count};
    bt_fpu_dense(&window, x, w, start, y, 1);
}

BT_RECURRENT_KERNELS(fpu, bt_rows_f32_fpu)
