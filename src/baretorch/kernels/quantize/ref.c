#include "quantize.h"

/* Half to even without libm: adding 1.5 * 2^23 leaves no room for a fraction, and the sum rounds as all sums do. */
BT_INLINE int32_t bt_round_i32(float v)
{
    union {
        float f;
        int32_t i;
    } bits;
    bits.f = v + 12582912.0f;
    return bits.i - 0x4b400000;
}

BT_KERNEL void bt_quantize_ref(const bt_quantize *p, const float *x, int8_t *y)
{
    const float lo = (float)(-128 - p->zero);
    const float hi = (float)(127 - p->zero);
    for (int32_t i = 0; i < p->count; i++) {
        float v = x[i] * p->factor;
        v = v > lo ? v : (v != v ? 0.0f : lo);
        v = v < hi ? v : hi;
        y[i] = (int8_t)(bt_round_i32(v) + p->zero);
    }
}

BT_KERNEL void bt_dequantize_ref(const bt_quantize *p, const int8_t *x, float *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (float)(x[i] - p->zero) * p->factor;
}
