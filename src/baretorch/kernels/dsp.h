/* Byte-pair extension and dual multiplies of the DSP extension, in the form that the int8 kernels share. */
#ifndef BT_DSP_H
#define BT_DSP_H

#include "int8.h"

/* Bytes 0 and 2, sign-extended to halfwords. */
BT_INLINE int32_t bt_even_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1" : "=r"(pair) : "r"(word));
    return pair;
}

/* Bytes 1 and 3, sign-extended to halfwords. */
BT_INLINE int32_t bt_odd_bytes(int32_t word)
{
    int32_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

/* Bytes 0 and 2 as halfwords, plus the halfwords of `more`; bytes 1 and 3. */
BT_INLINE int32_t bt_even_plus(int32_t more, int32_t word)
{
    int32_t pair;
    __asm__("sxtab16 %0, %1, %2" : "=r"(pair) : "r"(more), "r"(word));
    return pair;
}

BT_INLINE int32_t bt_odd_plus(int32_t more, int32_t word)
{
    int32_t pair;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(pair) : "r"(more), "r"(word));
    return pair;
}

/* The low halfwords of a and b side by side; the high halfwords. */
BT_INLINE int32_t bt_low_pair(int32_t a, int32_t b)
{
    int32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

BT_INLINE int32_t bt_high_pair(int32_t a, int32_t b)
{
    int32_t pair;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(pair) : "r"(b), "r"(a));
    return pair;
}

/* sum + both products of halfwords */
BT_INLINE int32_t bt_dual(int32_t a, int32_t b, int32_t sum)
{
    __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* sum + the product of the low halfwords; of the high halfwords */
BT_INLINE int32_t bt_low(int32_t a, int32_t b, int32_t sum)
{
    __asm__("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

BT_INLINE int32_t bt_high(int32_t a, int32_t b, int32_t sum)
{
    __asm__("smlatt %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* The larger of each of two halfwords: SSUB16 notes where a - b >= 0, and SEL takes those of a. The smaller of each. */
BT_INLINE int32_t bt_larger_halves(int32_t a, int32_t b)
{
    int32_t result;
    __asm__("ssub16 %0, %1, %2\n\t"
            "sel %0, %1, %2"
            : "=&r"(result)
            : "r"(a), "r"(b)
            : "cc");
    return result;
}

BT_INLINE int32_t bt_smaller_halves(int32_t a, int32_t b)
{
    int32_t result;
    __asm__("ssub16 %0, %1, %2\n\t"
            "sel %0, %2, %1"
            : "=&r"(result)
            : "r"(a), "r"(b)
            : "cc");
    return result;
}

/* Both halfwords limited: int16's own limits cost nothing. */
BT_INLINE int32_t bt_limit_halves(int32_t pair, int32_t lo, int32_t hi)
{
    if (lo > -32768)
        pair = bt_larger_halves(pair, bt_low_pair(lo, lo));
    if (hi < 32767)
        pair = bt_smaller_halves(pair, bt_low_pair(hi, hi));
    return pair;
}

/* Four bytes from anywhere. */
BT_INLINE int32_t bt_load4(const int8_t *from)
{
    int32_t word;
    __builtin_memcpy(&word, from, 4);
    return word;
}

#define BT_UNROLL_4 _Pragma("GCC unroll 4")

BT_INLINE void bt_copy_bytes(int8_t *to, const int8_t *from, int32_t count)
{
    const int32_t fours = count & ~3;
    BT_UNROLL_4
    for (int32_t i = 0; i < fours; i += 4)
        __builtin_memcpy(to + i, from + i, 4);
    for (int32_t i = fours; i < count; i++)
        to[i] = from[i];
}

/* The same for many bytes: where they are aligned to words, 4 instructions for 32. */
BT_SHARED void bt_copy_row(int8_t *to, const int8_t *from, int32_t count)
{
    register int8_t *r0 __asm__("r0") = to;
    register const int8_t *r1 __asm__("r1") = from;
    register const int8_t *r2 __asm__("r2") = from + (count & ~31);
    const int32_t rest = count & 31;
    if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0 && count >= 32)
        __asm__ volatile("1:\n\t"
                         "ldmia r1!, {r3-r6, r8-r11}\n\t"
                         "stmia r0!, {r3-r6, r8-r11}\n\t"
                         "cmp r1, r2\n\t"
                         "bne 1b"
                         : "+&r"(r0), "+&r"(r1), "+&r"(r2)
                         :
                         : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "cc", "memory");
    else
        for (; r1 != r2; r0 += 4, r1 += 4)
            __builtin_memcpy(r0, r1, 4);
    for (int32_t i = 0; i < rest; i++)
        r0[i] = r1[i];
}

BT_INLINE void bt_fill_bytes(int8_t *to, int32_t value, int32_t count)
{
    const int32_t four = (int32_t)((uint32_t)(value & 0xff) * 0x01010101u);
    const int32_t fours = count & ~3;
    for (int32_t i = 0; i < fours; i += 4)
        __builtin_memcpy(to + i, &four, 4);
    for (int32_t i = fours; i < count; i++)
        to[i] = (int8_t)value;
}

#endif
