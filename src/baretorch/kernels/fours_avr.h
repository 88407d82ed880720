/* Outputs of int8 layers on AVR, four at a time: the 8-bit multiplier with sums of 24 bits.
 *
 * Inputs and weights have 128 added, so that products are without sign and go into a sum with three instructions. A sum
 * begins as -128 * the sum of the inputs so changed, which takes the weights' 128 out again; the inputs' is part of the
 * bias. Four products take 35 cycles, of which loads from flash are 12, an output 110.
 *
 * weights: of four outputs [inputs][4] bytes, then four times three bytes of bias and four of multiplier << shift. */
#ifndef BT_FOURS_AVR_H
#define BT_FOURS_AVR_H

#include "int8.h"

/* Read by assembly: the order matters. */
typedef struct {
    const int8_t *x;
    int8_t *y;
    uint16_t inputs;      /* 1 or more */
    uint8_t start[3];     /* of the sums */
    uint8_t outputs;      /* 1 or more */
    uint8_t zero, lo, hi; /* with 128 added */
} bt_fours_avr;

#define BT_FOURS_PRODUCT(low, middle, high)                                                                            \
    "lpm r17, Z+\n\t"                                                                                                  \
    "mul r16, r17\n\t"                                                                                                 \
    "add " low ", r0\n\t"                                                                                              \
    "adc " middle ", r1\n\t"                                                                                           \
    "adc " high ", r14\n\t"

/* y = clamp(zero + ((a * m + 2^31) >> 32)) for the sum a of 24 bits in r2 to r4 with its bias, and m of 32 bits.
 * m is in r16, r17, r24, r25; the product's bytes 1 to 5 are in r22, r18 to r21, the last two being the result. The
 * sum is taken without sign, and m taken off where it has one. */
#define BT_FOURS_OUTPUT                                                                                                \
    "lpm r17, Z+\n\t"                                                                                                  \
    "add r2, r17\n\t"                                                                                                  \
    "lpm r17, Z+\n\t"                                                                                                  \
    "adc r3, r17\n\t"                                                                                                  \
    "lpm r17, Z+\n\t"                                                                                                  \
    "adc r4, r17\n\t"                                                                                                  \
    "lpm r16, Z+\n\t"                                                                                                  \
    "lpm r17, Z+\n\t"                                                                                                  \
    "lpm r24, Z+\n\t"                                                                                                  \
    "lpm r25, Z+\n\t"                                                                                                  \
    "mul r2, r16\n\t"                                                                                                  \
    "mov r22, r1\n\t"                                                                                                  \
    "mul r2, r24\n\t"                                                                                                  \
    "movw r18, r0\n\t"                                                                                                 \
    "mul r3, r25\n\t"                                                                                                  \
    "movw r20, r0\n\t"                                                                                                 \
    "mul r2, r17\n\t"                                                                                                  \
    "add r22, r0\n\t"                                                                                                  \
    "adc r18, r1\n\t"                                                                                                  \
    "adc r19, r14\n\t" /* never a carry: 255 * 255 + 254 + 1 + 254 + 1 < 2^16 */                                       \
    "mul r3, r16\n\t"                                                                                                  \
    "add r22, r0\n\t"                                                                                                  \
    "adc r18, r1\n\t"                                                                                                  \
    "adc r19, r14\n\t"                                                                                                 \
    "mul r3, r17\n\t"                                                                                                  \
    "add r18, r0\n\t"                                                                                                  \
    "adc r19, r1\n\t"                                                                                                  \
    "adc r20, r14\n\t"                                                                                                 \
    "adc r21, r14\n\t"                                                                                                 \
    "mul r4, r16\n\t"                                                                                                  \
    "add r18, r0\n\t"                                                                                                  \
    "adc r19, r1\n\t"                                                                                                  \
    "adc r20, r14\n\t"                                                                                                 \
    "adc r21, r14\n\t"                                                                                                 \
    "mul r2, r25\n\t"                                                                                                  \
    "add r19, r0\n\t"                                                                                                  \
    "adc r20, r1\n\t"                                                                                                  \
    "adc r21, r14\n\t"                                                                                                 \
    "mul r3, r24\n\t"                                                                                                  \
    "add r19, r0\n\t"                                                                                                  \
    "adc r20, r1\n\t"                                                                                                  \
    "adc r21, r14\n\t"                                                                                                 \
    "mul r4, r17\n\t"                                                                                                  \
    "add r19, r0\n\t"                                                                                                  \
    "adc r20, r1\n\t"                                                                                                  \
    "adc r21, r14\n\t"                                                                                                 \
    "mul r4, r24\n\t"                                                                                                  \
    "add r20, r0\n\t"                                                                                                  \
    "adc r21, r1\n\t"                                                                                                  \
    "mul r4, r25\n\t"                                                                                                  \
    "add r21, r0\n\t"                                                                                                  \
    "sbrs r4, 7\n\t"                                                                                                   \
    "rjmp 5f\n\t"                                                                                                      \
    "sub r19, r16\n\t"                                                                                                 \
    "sbc r20, r17\n\t"                                                                                                 \
    "sbc r21, r24\n"                                                                                                   \
    "5:\n\t"                                                                                                           \
    "lsl r19\n\t" /* half up */                                                                                        \
    "ldd r16, Y+10\n\t"                                                                                                \
    "adc r20, r16\n\t"                                                                                                 \
    "adc r21, r14\n\t"                                                                                                 \
    "breq 7f\n\t"                                                                                                      \
    "ldi r20, 0\n\t"                                                                                                   \
    "brmi 7f\n\t"                                                                                                      \
    "ldi r20, 255\n"                                                                                                   \
    "7:\n\t"                                                                                                           \
    "ldd r16, Y+11\n\t"                                                                                                \
    "cp r20, r16\n\t"                                                                                                  \
    "brsh 8f\n\t"                                                                                                      \
    "mov r20, r16\n"                                                                                                   \
    "8:\n\t"                                                                                                           \
    "ldd r16, Y+12\n\t"                                                                                                \
    "cp r16, r20\n\t"                                                                                                  \
    "brsh 9f\n\t"                                                                                                      \
    "mov r20, r16\n"                                                                                                   \
    "9:\n\t"                                                                                                           \
    "subi r20, 128\n\t"                                                                                                \
    "st X+, r20\n\t"

/* All outputs of one window, whose inputs are contiguous. The state is used up. */
BT_SHARED void bt_fours_avr_run(bt_fours_avr *s, const BT_FLASH uint8_t *weights)
{
    __asm__ volatile(
        "clr r14\n\t"
        "ldd r15, Y+9\n\t"
        "ldd r26, Y+0\n\t" /* the sum of the inputs in r18 to r20 */
        "ldd r27, Y+1\n\t"
        "ldd r24, Y+4\n\t"
        "ldd r25, Y+5\n\t"
        "clr r18\n\t"
        "clr r19\n\t"
        "clr r20\n"
        "1:\n\t"
        "ld r16, X+\n\t"
        "subi r16, 128\n\t"
        "add r18, r16\n\t"
        "adc r19, r14\n\t"
        "adc r20, r14\n\t"
        "sbiw r24, 1\n\t"
        "brne 1b\n\t"
        "lsr r20\n\t" /* times -128 */
        "ror r19\n\t"
        "ror r18\n\t"
        "clr r17\n\t"
        "ror r17\n\t"
        "clr r2\n\t"
        "sub r2, r17\n\t"
        "clr r3\n\t"
        "sbc r3, r18\n\t"
        "clr r4\n\t"
        "sbc r4, r19\n\t"
        "std Y+6, r2\n\t"
        "std Y+7, r3\n\t"
        "std Y+8, r4\n"
        "1:\n\t" /* four outputs */
        "ldd r26, Y+0\n\t"
        "ldd r27, Y+1\n\t"
        "ldd r24, Y+4\n\t"
        "ldd r25, Y+5\n\t"
        "ldd r2, Y+6\n\t"
        "ldd r3, Y+7\n\t"
        "ldd r4, Y+8\n\t"
        "mov r5, r2\n\t"
        "mov r6, r3\n\t"
        "mov r7, r4\n\t"
        "movw r8, r2\n\t"
        "mov r10, r4\n\t"
        "mov r11, r2\n\t"
        "mov r12, r3\n\t"
        "mov r13, r4\n"
        "2:\n\t"
        "ld r16, X+\n\t"
        "subi r16, 128\n\t" BT_FOURS_PRODUCT("r2", "r3", "r4") BT_FOURS_PRODUCT("r5", "r6", "r7")
            BT_FOURS_PRODUCT("r8", "r9", "r10") BT_FOURS_PRODUCT("r11", "r12", "r13")
        "sbiw r24, 1\n\t"
        "brne 2b\n\t"
        "ldd r26, Y+2\n\t"
        "ldd r27, Y+3\n\t"
        "ldi r23, 4\n"
        "4:\n\t" BT_FOURS_OUTPUT
        "dec r15\n\t"
        "breq 3f\n\t"
        "dec r23\n\t"
        "breq 6f\n\t"
        "mov r2, r5\n\t" /* the next sum */
        "mov r3, r6\n\t"
        "mov r4, r7\n\t"
        "mov r5, r8\n\t"
        "mov r6, r9\n\t"
        "mov r7, r10\n\t"
        "mov r8, r11\n\t"
        "mov r9, r12\n\t"
        "mov r10, r13\n\t"
        "rjmp 4b\n"
        "6:\n\t"
        "std Y+2, r26\n\t"
        "std Y+3, r27\n\t"
        "rjmp 1b\n"
        "3:\n\t"
        "clr r1"
        : "+&z"(weights)
        : "y"(s)
        : "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18",
          "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "memory");
}

#endif
