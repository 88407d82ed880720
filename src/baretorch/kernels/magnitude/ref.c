#include "magnitude.h"

#include "../math/round.h"

/* Squares of very large or very small numbers leave the range of float: such numbers are scaled by powers of 2. */
BT_KERNEL void bt_magnitude_f32_ref(const bt_magnitude_f32 *p, const float *x, float *y)
{
    if (p->squared) {
        BT_UNROLL_8
        for (int32_t i = 0; i < p->count; i++)
            y[i] = x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1];
        return;
    }
    for (int32_t i = 0; i < p->count; i++) {
        float re = x[2 * i], im = x[2 * i + 1];
        float sum = re * re + im * im;
        if (sum > 0x1p-80f && sum < 0x1p126f)
            y[i] = bt_sqrt_f32(sum);
        else {
            float up = sum > 1.0f ? 0x1p-70f : 0x1p70f, back = sum > 1.0f ? 0x1p70f : 0x1p-70f;
            re *= up;
            im *= up;
            y[i] = bt_sqrt_f32(re * re + im * im) * back;
        }
    }
}
