/* Weights of 16 bits, IEEE half precision. Every one is a float: arithmetic is that of float32. */
#ifndef BT_HALF_H
#define BT_HALF_H

#include "bt.h"

/* A number that is neither infinite nor NaN, on any core. Only numbers below 2^-14 take the loop. */
BT_INLINE float bt_half(int16_t half)
{
    union {
        uint32_t bits;
        float value;
    } is = { 0 };
    uint32_t exponent = 0x38000000;
    uint32_t mantissa = ((uint32_t)half & 0x7fffu) << 13;
    if (mantissa != 0) {
        for (; mantissa < 0x800000; mantissa <<= 1)
            exponent -= 0x800000;
        is.bits = exponent + mantissa;
    }
    is.bits |= ((uint32_t)half & 0x8000u) << 16;
    return is.value;
}

#endif
