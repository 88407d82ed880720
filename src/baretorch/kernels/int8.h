/* The integer arithmetic that every int8 kernel shares; docs/arithmetic.md tells why it is so. */
#ifndef BT_INT8_H
#define BT_INT8_H

#include "bt.h"

/* zero + ((acc * multiplier + 2^31) >> 32), multiplier >= 0: one instruction (SMMLAR) where the core has it. */
BT_INLINE int32_t bt_scale(int32_t acc, int32_t multiplier, int32_t zero)
{
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(acc), "r"(multiplier), "r"(zero));
    return result;
#elif defined(__ARM_ARCH_6M__)
    /* No long multiply: by halfwords. */
    const uint32_t low = (uint32_t)multiplier & 0xffff, high = (uint32_t)multiplier >> 16;
    const uint32_t acc_low = (uint32_t)acc & 0xffff;
    const int32_t acc_high = acc >> 16;
    const int32_t middle = acc_high * (int32_t)low + (int32_t)(acc_low * low >> 16);
    const uint32_t rest = ((uint32_t)middle & 0xffff) + acc_low * high + (1u << 15);
    return zero + acc_high * (int32_t)high + (middle >> 16) + (int32_t)(rest >> 16);
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

/* The same with multiplier << shift, where outputs stay below 2^15 before the limits: 32 bits are enough. */
BT_INLINE int8_t bt_requantize_small(int32_t acc, uint32_t multiplier, int32_t zero, int32_t lo, int32_t hi)
{
#if defined(__ARM_ARCH_6M__)
    const uint32_t low = multiplier & 0xffff, high = multiplier >> 16;
    const uint32_t rest = ((uint32_t)acc & 0xffff) * low >> 16;
    const uint32_t scaled = (uint32_t)acc * high + (uint32_t)(acc >> 16) * low + rest + (1u << 15);
    return (int8_t)bt_clamp_i32(((int32_t)scaled >> 16) + zero, lo, hi);
#else
    return (int8_t)bt_clamp_i32((int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << 31)) >> 32) + zero, lo, hi);
#endif
}

#endif
