/* Between float32 and the bits of numbers of 16 bits: float16, IEEE half precision, and bfloat16, the upper half of a
 * float32. */
#ifndef BT_HALVES_H
#define BT_HALVES_H

#include "../elementwise/elementwise.h"

typedef union {
    uint32_t bits;
    float value;
} bt_float_bits;

BT_INLINE float bt_from_float16(uint16_t half)
{
    const uint32_t size = half & 0x7fffu;
    bt_float_bits is;
    is.bits = size << 13;
    if (size >= 0x7c00u) /* infinite, or NaN */
        is.bits += 0x70000000u;
    else if (size >= 0x400u)
        is.bits += 0x38000000u;
    else /* multiples of 2^-24 */
        is.value = (float)(int32_t)size * 5.9604644775390625e-8f;
    is.bits |= (uint32_t)(half & 0x8000u) << 16;
    return is.value;
}

BT_INLINE float bt_from_bfloat16(uint16_t half)
{
    bt_float_bits is;
    is.bits = (uint32_t)half << 16;
    return is.value;
}

#ifndef BT_INLINE_KERNELS
/* Exact. */
void bt_from_float16_ref(const bt_unary *p, const uint16_t *x, float *y);
void bt_from_bfloat16_ref(const bt_unary *p, const uint16_t *x, float *y);
/* Half to even; a number that is too large becomes infinite, and NaN keeps its sign. */
void bt_to_float16_ref(const bt_unary *p, const float *x, uint16_t *y);
void bt_to_bfloat16_ref(const bt_unary *p, const float *x, uint16_t *y);
#endif

#endif
