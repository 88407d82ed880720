/* The integer arithmetic that every int8 kernel shares; docs/arithmetic.md tells why it is so. */
#ifndef BT_INT8_H
#define BT_INT8_H

#include "bt.h"

/* zero + ((acc * multiplier + 2^31) >> 32): one instruction (SMMLAR) where the core has it. */
BT_INLINE int32_t bt_scale(int32_t acc, int32_t multiplier, int32_t zero)
{
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(acc), "r"(multiplier), "r"(zero));
    return result;
#else
    return zero + (int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << 31)) >> 32);
#endif
}

BT_INLINE int32_t bt_clamp_i32(int32_t v, int32_t lo, int32_t hi)
{
#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
    /* Literal limits of int8 itself are one instruction, which compilers do not always find. */
    if (__builtin_constant_p(lo == -128 || hi == 127) && (lo == -128 || hi == 127)) {
        __asm__("ssat %0, #8, %1" : "=r"(v) : "r"(v));
        if (lo != -128)
            return v < lo ? lo : v;
        return hi != 127 && v > hi ? hi : v;
    }
#endif
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

/* The one way from an accumulator to an output. Left shifts of negative numbers are multiplications. */
BT_INLINE int8_t bt_requantize(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero, int32_t lo, int32_t hi)
{
    return (int8_t)bt_clamp_i32(bt_scale(acc * (int32_t)(1 << shift), multiplier, zero), lo, hi);
}

#endif
