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

/* Four bytes from anywhere. */
BT_INLINE int32_t bt_load4(const int8_t *from)
{
    int32_t word;
    __builtin_memcpy(&word, from, 4);
    return word;
}

BT_INLINE void bt_copy_bytes(int8_t *to, const int8_t *from, int32_t count)
{
    int32_t i = 0;
    for (; i + 4 <= count; i += 4)
        __builtin_memcpy(to + i, from + i, 4);
    for (; i < count; i++)
        to[i] = from[i];
}

#endif
