/* Square root and rounding to whole numbers for float, without libm. All are exact or correctly rounded. */
#ifndef BT_ROUND_H
#define BT_ROUND_H

#include "math.h"

BT_INLINE float bt_abs_f32(float x)
{
    return bt_from_bits_f32(bt_bits_f32(x) & 0x7fffffffu);
}

/* |x| with the sign of s. */
BT_INLINE float bt_with_sign_f32(float x, float s)
{
    return bt_from_bits_f32((bt_bits_f32(x) & 0x7fffffffu) | (bt_bits_f32(s) & 0x80000000u));
}

/* To the nearest whole number, halves to the even one. */
BT_INLINE float bt_round_f32(float x)
{
    const float whole = 8388608.0f; /* 2^23: from there on every float is whole */
    float a = bt_abs_f32(x);
    if (!(a < whole))
        return x;
    return bt_with_sign_f32((a + whole) - whole, x);
}

BT_INLINE float bt_floor_f32(float x)
{
    float r = bt_round_f32(x);
    return r > x ? r - 1.0f : r;
}

BT_INLINE float bt_ceil_f32(float x)
{
    return -bt_floor_f32(-x);
}

BT_INLINE float bt_trunc_f32(float x)
{
    return bt_with_sign_f32(bt_floor_f32(bt_abs_f32(x)), x);
}

/* The square root as at school, two binary digits of x for each of the root; correctly rounded. */
BT_INLINE float bt_sqrt_bits_f32(float x)
{
    uint32_t bits = bt_bits_f32(x);
    if (bits - 1u >= 0x7f7fffffu) /* zero, infinity, NaN, or negative */
        return (bits << 1) == 0u || bits == 0x7f800000u ? x : BT_NAN;
    int32_t exponent = (int32_t)(bits >> 23);
    uint32_t digits = bits & 0x007fffffu;
    if (exponent != 0)
        digits |= 0x00800000u;
    else
        for (exponent = 1; (digits & 0x00800000u) == 0u; exponent--)
            digits <<= 1;
    digits <<= 2 - (exponent & 1); /* now 26, and their power of two is even */
    uint32_t root = 0u, rest = 0u;
    for (int i = 0; i < 25; i++) {
        rest = (rest << 2) | ((digits >> 24) & 3u);
        digits <<= 2;
        uint32_t tried = (root << 2) | 1u;
        root <<= 1;
        if (rest >= tried) {
            rest -= tried;
            root |= 1u;
        }
    }
    /* One digit more than fits says whether to round up: a root is never half way. */
    return bt_from_bits_f32(((uint32_t)((exponent + 125) >> 1) << 23) + ((root + 1u) >> 1));
}

/* One instruction where the core has it, whatever the compiler thinks of errno. */
BT_INLINE float bt_sqrt_f32(float x)
{
#if defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__SOFTFP__) && !defined(__aarch64__)
    float y;
    __asm__("vsqrt.f32 %0, %1" : "=t"(y) : "t"(x));
    return y;
#elif defined(__riscv_flen)
    float y;
    __asm__("fsqrt.s %0, %1" : "=f"(y) : "f"(x));
    return y;
#else
    return bt_sqrt_bits_f32(x);
#endif
}

/* a - b n with the whole n that a / b, rounded toward zero, is. Exact. */
BT_INLINE float bt_fmod_f32(float a, float b)
{
    float x = bt_abs_f32(a), y = bt_abs_f32(b);
    if (!(x < BT_INF) || !(y > 0.0f))
        return BT_NAN;
    if (x < y || y == BT_INF)
        return a;
    /* Long division: halve a power of two times y until it is y again. Every difference is exact. */
    float step = y;
    while (step <= x * 0.5f)
        step += step;
    for (;; step *= 0.5f) {
        if (x >= step)
            x -= step;
        if (!(step > y))
            return bt_with_sign_f32(x, a);
    }
}

/* The same with a / b rounded down: the result has b's sign, as Python's % has. */
BT_INLINE float bt_remainder_f32(float a, float b)
{
    float r = bt_fmod_f32(a, b);
    return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}

/* a / b rounded down; exact where a / b is next to a whole number and would be rounded to it. */
BT_INLINE float bt_floor_div_f32(float a, float b)
{
    if (b == 0.0f)
        return a / b;
    float r = bt_fmod_f32(a, b);
    float whole = (a - r) / b;
    if (r != 0.0f && (r < 0.0f) != (b < 0.0f))
        whole -= 1.0f;
    return bt_round_f32(whole);
}

#endif
