#include "wide.h"

BT_KERNEL void bt_widen_ref(const bt_wide_form *p, const int8_t *x, int16_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int16_t)((x[i] - p->zero) * 128);
}

BT_KERNEL void bt_narrow_ref(const bt_wide_form *p, const int16_t *x, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int8_t)bt_clamp_i32(p->zero + ((x[i] + 64) >> 7), -128, 127);
}

/* Half to even without libm, as in quantize/ref.c. */
BT_KERNEL void bt_quantize16_ref(const bt_wide_form *p, const float *x, int16_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        union {
            float f;
            int32_t i;
        } bits;
        float v = x[i] * p->factor;
        v = v > -32768.0f ? v : (v != v ? 0.0f : -32768.0f);
        bits.f = (v < 32767.0f ? v : 32767.0f) + 12582912.0f;
        y[i] = (int16_t)(bits.i - 0x4b400000);
    }
}

BT_KERNEL void bt_dequantize16_ref(const bt_wide_form *p, const int16_t *x, float *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (float)x[i] * p->factor;
}
