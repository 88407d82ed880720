/* The integer arithmetic that every int8 kernel shares; docs/arithmetic.md explains it. */
#ifndef BT_INT8_H
#define BT_INT8_H

#include "bt.h"

/* zero + ((acc * multiplier + 2^31) >> 32), multiplier >= 0 */
BT_INLINE int32_t bt_scale_any(int32_t acc, int32_t multiplier, int32_t zero)
{
    return zero + (int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << 31)) >> 32);
}

/* The same with a multiplier of all 32 bits, where the result stays below 2^15. */
BT_INLINE int32_t bt_scale_small_any(int32_t acc, uint32_t multiplier, int32_t zero)
{
    return (int32_t)(((int64_t)acc * multiplier + ((int64_t)1 << 31)) >> 32) + zero;
}

BT_INLINE int32_t bt_clamp_i32_any(int32_t v, int32_t lo, int32_t hi)
{
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

/* Operations that take fewer instructions on a core are in the file of that core. */
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#include "int8_dsp.h"
#define bt_scale bt_scale_dsp
#define bt_scale_small bt_scale_small_any
#elif defined(__ARM_ARCH_6M__)
#include "int8_v6m.h"
#define bt_scale bt_scale_v6m
#define bt_scale_small bt_scale_small_v6m
#elif defined(BT_XCV)
#include "int8_xcv.h"
#define bt_scale bt_scale_xcv
#define bt_scale_small bt_scale_small_any
#elif defined(__AVR__)
#include "int8_avr.h"
#define bt_scale bt_scale_avr
#define bt_scale_small bt_scale_small_avr
#else
#define bt_scale bt_scale_any
#define bt_scale_small bt_scale_small_any
#endif

#if defined(__ARM_FEATURE_SAT) && __ARM_FEATURE_SAT
#include "int8_v7m.h"
#define bt_clamp_i32 bt_clamp_i32_v7m
#elif defined(BT_XCV)
#define bt_clamp_i32 bt_clamp_i32_xcv
#else
#define bt_clamp_i32 bt_clamp_i32_any
#endif

/* The one way from an accumulator to an output. Left shifts of negative numbers are multiplications. */
BT_INLINE int8_t bt_requantize(int32_t acc, int32_t multiplier, int32_t shift, int32_t zero, int32_t lo, int32_t hi)
{
    return (int8_t)bt_clamp_i32(bt_scale(acc * (INT32_C(1) << shift), multiplier, zero), lo, hi);
}

/* The same with multiplier << shift, where outputs stay below 2^15 before the limits: 32 bits are enough. */
BT_INLINE int8_t bt_requantize_small(int32_t acc, uint32_t multiplier, int32_t zero, int32_t lo, int32_t hi)
{
    return (int8_t)bt_clamp_i32(bt_scale_small(acc, multiplier, zero), lo, hi);
}

#endif
