/* The same results as ref.c, with integers only, for cores without FPU: a fifth of the instructions, and no float
 * library. `factor` is a normal number with room on both sides; see ops/quantize.py. */
#include "quantize.h"

#define BT_HIDDEN (1u << 23) /* the leading bit of a mantissa, which is not stored */

BT_INLINE uint32_t bt_bits(const float *v)
{
    uint32_t bits;
    __builtin_memcpy(&bits, v, 4);
    return bits;
}

BT_INLINE uint32_t bt_mantissa(uint32_t bits)
{
    return (bits & (BT_HIDDEN - 1)) | BT_HIDDEN;
}

/* v >> shift, half to even; shift is 1 or more */
BT_INLINE uint32_t bt_round_shift(uint32_t v, int32_t shift)
{
    return (v + (1u << (shift - 1)) - 1 + ((v >> shift) & 1)) >> shift;
}

/* The product a * b of mantissas, rounded to 24 bits as a float multiplication does, is the result times 2^23 * 2^*more */
BT_INLINE uint32_t bt_multiply(uint32_t a, uint32_t b, int32_t *more)
{
    const uint32_t a_low = a & 0xfff, a_high = a >> 12, b_low = b & 0xfff, b_high = b >> 12;
    const uint32_t lowest = a_low * b_low;
    const uint32_t middle = a_high * b_low + a_low * b_high + (lowest >> 12);
    uint32_t high = a_high * b_high + (middle >> 12);
    uint32_t low = ((middle & 0xfff) << 12) | (lowest & 0xfff); /* 24 bits below `high` */
    *more = 1;
    if (high < BT_HIDDEN) {
        high = (high << 1) | (low >> 23);
        low = (low << 1) & 0xffffff;
        *more = 0;
    }
    return high + ((low + 0x7fffff + (high & 1)) >> 24);
}

BT_SHARED int32_t bt_quantize_one(uint32_t bits, uint32_t factor)
{
    /* 2^size <= |product| < 4 * 2^size */
    const int32_t size = (int32_t)((bits >> 23) & 0xff) + (int32_t)(factor >> 23) - 254;
    if (size < -2 || bits << 1 > 0xff000000u) /* below one half, or NaN */
        return 0;
    int32_t n = 512;
    if (size < 9) {
        int32_t more;
        const uint32_t product = bt_multiply(bt_mantissa(bits), bt_mantissa(factor), &more);
        n = (int32_t)bt_round_shift(product, 23 - size - more);
    }
    return bits >> 31 ? -n : n;
}

BT_KERNEL void bt_quantize_soft(const bt_quantize *p, const float *x, int8_t *y)
{
    const uint32_t factor = bt_bits(&p->factor);
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int8_t)bt_clamp_i32(bt_quantize_one(bt_bits(x + i), factor) + p->zero, -128, 127);
}

BT_KERNEL void bt_dequantize_soft(const bt_quantize *p, const int8_t *x, float *y)
{
    const uint32_t factor = bt_bits(&p->factor);
    const uint32_t mantissa = bt_mantissa(factor);
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t v = x[i] - p->zero;
        uint32_t bits = 0;
        if (v != 0) {
            const uint32_t product = mantissa * (uint32_t)(v < 0 ? -v : v);
            int32_t shift = product >> 28 ? 4 : 0;
            shift += product >> shift >> 26 ? 2 : 0;
            shift += product >> shift >> 25 ? 1 : 0;
            shift += product >> shift >> 24 ? 1 : 0;
            const uint32_t rounded = (shift ? bt_round_shift(product, shift) : product) - BT_HIDDEN;
            bits = ((factor >> 23) + (uint32_t)shift) * BT_HIDDEN + rounded + ((uint32_t)v & 0x80000000u);
        }
        __builtin_memcpy(y + i, &bits, 4);
    }
}
