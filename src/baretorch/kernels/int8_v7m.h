/* A step of int8.h on Armv7-M and later, which saturate in one instruction. */
#ifndef BT_INT8_V7M_H
#define BT_INT8_V7M_H

#include "bt.h"

/* Literal limits of int8 itself are one instruction, which compilers do not always find. */
BT_INLINE int32_t bt_clamp_i32_v7m(int32_t v, int32_t lo, int32_t hi)
{
    if (__builtin_constant_p(lo == -128 || hi == 127) && (lo == -128 || hi == 127)) {
        __asm__("ssat %0, #8, %1" : "=r"(v) : "r"(v));
        if (lo != -128)
            return v < lo ? lo : v;
        return hi != 127 && v > hi ? hi : v;
    }
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

#endif
