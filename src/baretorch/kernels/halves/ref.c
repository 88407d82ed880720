#include "halves.h"

#include "../elementwise/loops.h"

BT_INLINE uint16_t bt_to_float16(float v)
{
    bt_float_bits is;
    is.value = v;
    const uint32_t sign = is.bits >> 16 & 0x8000u;
    is.bits &= 0x7fffffffu;
    if (is.bits > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (is.bits >= 0x477ff000u) /* 65520, which is as near to 65536 as to the largest half */
        return (uint16_t)(sign | 0x7c00u);
    if (is.bits < 0x38800000u) { /* 2^-14: the sum has the steps of 2^-24 that halves have here, and rounds to one */
        is.value += 0.5f;
        return (uint16_t)(sign | (is.bits - 0x3f000000u));
    }
    is.bits += 0xfffu + (is.bits >> 13 & 1u);
    return (uint16_t)(sign | (is.bits - 0x38000000u) >> 13);
}

BT_INLINE uint16_t bt_to_bfloat16(float v)
{
    bt_float_bits is;
    is.value = v;
    if ((is.bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((is.bits >> 16 & 0x8000u) | 0x7fc0u);
    return (uint16_t)((is.bits + 0x7fffu + (is.bits >> 16 & 1u)) >> 16);
}

BT_UNARY_REF(bt_from_float16_ref, bt_unary, uint16_t, float, bt_from_float16(v))
BT_UNARY_REF(bt_from_bfloat16_ref, bt_unary, uint16_t, float, bt_from_bfloat16(v))
BT_UNARY_REF(bt_to_float16_ref, bt_unary, float, uint16_t, bt_to_float16(v))
BT_UNARY_REF(bt_to_bfloat16_ref, bt_unary, float, uint16_t, bt_to_bfloat16(v))
