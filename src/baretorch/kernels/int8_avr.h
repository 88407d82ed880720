/* The operations of int8.h, with the 8-bit multiplier. */
#ifndef BT_INT8_AVR_H
#define BT_INT8_AVR_H

/* (acc * multiplier + 2^31) >> 32 in 16 products, 110 cycles with the call; the compiler's own takes 430. The product's
 * bytes 1 to 3 are in low, the upper half in high: acc is taken without sign, and the multiplier taken off where it has
 * one. */
BT_SHARED int32_t bt_high_avr(int32_t acc, uint32_t multiplier)
{
    int32_t high;
    uint32_t low;
    uint8_t nothing;
    __asm__("clr %[z]\n\t"
            "mul %A[a], %A[m]\n\t"
            "mov %B[l], r1\n\t"
            "mul %A[a], %C[m]\n\t"
            "movw %C[l], r0\n\t"
            "mul %B[a], %D[m]\n\t"
            "movw %A[h], r0\n\t"
            "mul %D[a], %D[m]\n\t"
            "movw %C[h], r0\n\t"
#define BT_FROM_1(x, y)                                                                                                \
    "mul " x ", " y "\n\t"                                                                                             \
    "add %B[l], r0\n\t"                                                                                                \
    "adc %C[l], r1\n\t"                                                                                                \
    "adc %D[l], %[z]\n\t" /* never a carry */
#define BT_FROM_2(x, y)                                                                                                \
    "mul " x ", " y "\n\t"                                                                                             \
    "add %C[l], r0\n\t"                                                                                                \
    "adc %D[l], r1\n\t"                                                                                                \
    "adc %A[h], %[z]\n\t"                                                                                              \
    "adc %B[h], %[z]\n\t"                                                                                              \
    "adc %C[h], %[z]\n\t"                                                                                              \
    "adc %D[h], %[z]\n\t"
#define BT_FROM_3(x, y)                                                                                                \
    "mul " x ", " y "\n\t"                                                                                             \
    "add %D[l], r0\n\t"                                                                                                \
    "adc %A[h], r1\n\t"                                                                                                \
    "adc %B[h], %[z]\n\t"                                                                                              \
    "adc %C[h], %[z]\n\t"                                                                                              \
    "adc %D[h], %[z]\n\t"
#define BT_FROM_4(x, y)                                                                                                \
    "mul " x ", " y "\n\t"                                                                                             \
    "add %A[h], r0\n\t"                                                                                                \
    "adc %B[h], r1\n\t"                                                                                                \
    "adc %C[h], %[z]\n\t"                                                                                              \
    "adc %D[h], %[z]\n\t"
#define BT_FROM_5(x, y)                                                                                                \
    "mul " x ", " y "\n\t"                                                                                             \
    "add %B[h], r0\n\t"                                                                                                \
    "adc %C[h], r1\n\t"                                                                                                \
    "adc %D[h], %[z]\n\t"
            BT_FROM_1("%A[a]", "%B[m]") BT_FROM_1("%B[a]", "%A[m]") BT_FROM_2("%B[a]", "%B[m]")
                BT_FROM_2("%C[a]", "%A[m]") BT_FROM_3("%A[a]", "%D[m]") BT_FROM_3("%B[a]", "%C[m]")
                    BT_FROM_3("%C[a]", "%B[m]") BT_FROM_3("%D[a]", "%A[m]") BT_FROM_4("%C[a]", "%C[m]")
                        BT_FROM_4("%D[a]", "%B[m]") BT_FROM_5("%C[a]", "%D[m]") BT_FROM_5("%D[a]", "%C[m]")
            "sbrs %D[a], 7\n\t"
            "rjmp 1f\n\t"
            "sub %A[h], %A[m]\n\t"
            "sbc %B[h], %B[m]\n\t"
            "sbc %C[h], %C[m]\n\t"
            "sbc %D[h], %D[m]\n"
            "1:\n\t"
            "lsl %D[l]\n\t" /* half up */
            "adc %A[h], %[z]\n\t"
            "adc %B[h], %[z]\n\t"
            "adc %C[h], %[z]\n\t"
            "adc %D[h], %[z]\n\t"
            "clr r1"
            : [h] "=&r"(high), [l] "=&r"(low), [z] "=&r"(nothing)
            : [a] "r"(acc), [m] "r"(multiplier)
            : "r0");
    return high;
}

BT_INLINE int32_t bt_scale_avr(int32_t acc, int32_t multiplier, int32_t zero)
{
    return zero + bt_high_avr(acc, (uint32_t)multiplier);
}

BT_INLINE int32_t bt_scale_small_avr(int32_t acc, uint32_t multiplier, int32_t zero)
{
    return zero + bt_high_avr(acc, multiplier);
}

#endif
