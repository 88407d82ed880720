#include "fixed_point.h"

BT_KERNEL void bt_to_fixed_ref(const bt_fixed_point *p, const float *x, int16_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        float v = x[i] * p->factor;
        v = v > -32768.0f ? v : (v != v ? 0.0f : -32768.0f);
        v = v < 32767.0f ? v : 32767.0f;
        /* Adding 1.5 * 2^23 leaves no room for a fraction, and the sum rounds as all sums do. */
        union {
            float f;
            int32_t i;
        } bits = {v + 12582912.0f};
        y[i] = (int16_t)(bits.i - 0x4b400000);
    }
}

BT_KERNEL void bt_from_fixed_ref(const bt_fixed_point *p, const int16_t *x, float *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (float)x[i] * p->factor;
}
