/* The same results as ref.c, with integers only, for cores without FPU: a fifth of the instructions, and no float
 * library. `factor` is a normal number with room on both sides; see ops/int8/quantize.py. */
#include "quantize.h"

#define BT_HIDDEN (1u << 23) /* the leading bit of a mantissa, which is not stored */

typedef union {
    float number;
    uint32_t bits;
} bt_float;

BT_INLINE uint32_t bt_bits(float number)
{
    const bt_float v = { number };
    return v.bits;
}

BT_INLINE uint32_t bt_mantissa(uint32_t bits)
{
    return (bits & (BT_HIDDEN - 1)) | BT_HIDDEN;
}

/* The product of two mantissas times 2^(size - 46), first rounded to 24 bits as a float multiplication rounds, then to
 * an integer, both half to even; -3 < size < 9. */
BT_SHARED uint32_t bt_quantize_exactly(uint32_t a, uint32_t b, int32_t size)
{
    const uint32_t a_low = a & 0xfff, a_high = a >> 12, b_low = b & 0xfff, b_high = b >> 12;
    const uint32_t lowest = a_low * b_low;
    const uint32_t middle = a_high * b_low + a_low * b_high + (lowest >> 12);
    uint32_t high = a_high * b_high + (middle >> 12);
    uint32_t low = ((middle & 0xfff) << 12) | (lowest & 0xfff); /* 24 bits below `high` */
    int32_t shift = 22 - size;
    if (high < BT_HIDDEN) {
        high = (high << 1) | (low >> 23);
        low = (low << 1) & 0xffffff;
        shift++;
    }
    high += (low + 0x7fffff + (high & 1)) >> 24;
    return (high + (1u << (shift - 1)) - 1 + ((high >> shift) & 1)) >> shift;
}

/* x * factor as an integer, half to even; beyond 511 any number beyond 511 */
BT_INLINE int32_t bt_quantize_product(uint32_t bits, uint32_t factor)
{
    /* 2^size <= |product| < 4 * 2^size */
    const int32_t size = (int32_t)(bits << 1 >> 24) + (int32_t)(factor >> 23) - 254;
    uint32_t n;
    if (size < -2)
        return 0;
    if (size < 9) {
        /* The leading 16 bits of both give the product but for 2^15 + 2^6 in these units; nearly always that does not
         * matter. */
        const uint32_t near = (((bits << 8) | 0x80000000u) >> 16) * (bt_mantissa(factor) >> 8) >> 2;
        const uint32_t half = 1u << (27 - size);
        n = (near + half - (1u << 7)) >> (28 - size);
        if (n != (near + half + (1u << 15) + (1u << 7)) >> (28 - size))
            n = bt_quantize_exactly(bt_mantissa(bits), bt_mantissa(factor), size);
    } else {
        n = bits << 1 > 0xff000000u ? 0 : 512; /* NaN is 0 */
    }
    return (int32_t)bits < 0 ? -(int32_t)n : (int32_t)n;
}

BT_KERNEL void bt_quantize_soft(const bt_quantize *p, const float *x, int8_t *y)
{
    const uint32_t factor = bt_bits(p->factor);
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int8_t)bt_clamp_i32(bt_quantize_product(bt_bits(x[i]), factor) + p->zero, -128, 127);
}

BT_KERNEL void bt_dequantize_soft(const bt_quantize *p, const int8_t *x, float *y)
{
    const uint32_t factor = bt_bits(p->factor);
    const uint32_t mantissa = bt_mantissa(factor);
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t v = x[i] - p->zero;
        bt_float result = { 0 };
        if (v != 0) {
            /* Bring the leading bit to the top, then round the bits below 24. */
            uint32_t product = mantissa * (uint32_t)(v < 0 ? -v : v);
            uint32_t exponent = (factor >> 23) + 7;
            if (!(product >> 28)) {
                product <<= 4;
                exponent -= 4;
            }
            if (!(product >> 30)) {
                product <<= 2;
                exponent -= 2;
            }
            for (; !(product >> 31); exponent--)
                product <<= 1;
            result.bits = (product >> 8) + (exponent << 23);
            result.bits += ((product & 0xff) + 0x7f + (result.bits & 1)) >> 8;
            result.bits += (uint32_t)v & 0x80000000u;
        }
        y[i] = result.number;
    }
}
