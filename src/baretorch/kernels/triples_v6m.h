/* triples.h on Armv6-M, in assembly; included there. */
#ifndef BT_TRIPLES_V6M_H
#define BT_TRIPLES_V6M_H

#include "v6m.h"

/* Packs count numbers of each position, 1 or more, which are `step` apart, into pairs of words to_step bytes apart. */
BT_INLINE uint32_t *bt_triples_pack(uint32_t *to, int32_t to_step, const int8_t *x0, const int8_t *x1,
                                    const int8_t *x2, int32_t step, int32_t count)
{
    /* All low registers but one; left to itself, gcc fails to find them where it keeps a frame pointer. */
    register const int8_t *x __asm__("r0") = x0;
    register uint32_t *at __asm__("r1") = to;
    register const int8_t *middle __asm__("r2") = x0 + step * count;
    register int32_t other __asm__("r3") = to_step;
    register const int32_t to1 __asm__("r4") = x1 - x0;
    register const int32_t to2 __asm__("r5") = x2 - x0;
    register const int32_t further __asm__("r6") = step;
    __asm__ volatile(".syntax unified\n\t"
                     "mov r12, %[middle]\n\t"
                     "mov lr, %[other]\n"
                     "1:\n\t"
                     "ldrsb %[middle], [%[x], %[to1]]\n\t"
                     "ldrsb %[other], [%[x], %[to2]]\n\t"
                     "lsls %[middle], %[middle], #10\n\t"
                     "adds %[other], %[other], %[middle]\n\t"
                     "str %[other], [%[at], #4]\n\t"
                     "ldrb %[other], [%[x]]\n\t"
                     "sxtb %[other], %[other]\n\t"
                     "lsls %[middle], %[middle], #11\n\t"
                     "adds %[other], %[other], %[middle]\n\t"
                     "str %[other], [%[at]]\n\t"
                     "add %[at], lr\n\t"
                     "adds %[x], %[x], %[further]\n\t"
                     "cmp %[x], r12\n\t"
                     "bne 1b"
                     : [x] "+&r"(x), [at] "+&r"(at), [middle] "+&r"(middle), [other] "+&r"(other)
                     : [to1] "r"(to1), [to2] "r"(to2), [further] "r"(further)
                     : "r12", "lr", "cc", "memory");
    return at;
}

/* x in r0, weights in r1, sums in r8 and r9. Two products for each position in 11 instructions. */
#define BT_TRIPLES_TWO(load, n, m)                                                                                     \
    "ldmia r0!, {r3-r6}\n\t" load(n) "muls r3, r2, r3\n\t"                                                             \
    "add r8, r3\n\t"                                                                                                   \
    "muls r4, r2, r4\n\t"                                                                                              \
    "add r9, r4\n\t" load(m) "muls r5, r2, r5\n\t"                                                                     \
    "add r8, r5\n\t"                                                                                                   \
    "muls r6, r2, r6\n\t"                                                                                              \
    "add r9, r6\n\t"
#define BT_TRIPLES_SIXTEEN(load)                                                                                       \
    BT_TRIPLES_TWO(load, 0, 1)                                                                                         \
    BT_TRIPLES_TWO(load, 2, 3)                                                                                         \
    BT_TRIPLES_TWO(load, 4, 5)                                                                                         \
    BT_TRIPLES_TWO(load, 6, 7)                                                                                         \
    BT_TRIPLES_TWO(load, 8, 9)                                                                                         \
    BT_TRIPLES_TWO(load, 10, 11)                                                                                       \
    BT_TRIPLES_TWO(load, 12, 13)                                                                                       \
    BT_TRIPLES_TWO(load, 14, 15)
#define BT_TRIPLES_BYTE(n) "ldrb r2, [r1, #" #n "]\n\t"
#define BT_TRIPLES_WORD(n) "ldmia r1!, {r2}\n\t"

#define BT_TRIPLES_OUTPUT(acc) "mov r1, " acc "\n\t" BT_V6M_OUTPUT("r8", "r9")
#define BT_TRIPLES_FIELD(name) BT_V6M_FIELD(bt_triples, name)

/* Writes the outputs; x, w, terms, y and count move on. Sixteen taps a turn; the first turn of the first part begins so
 * far into them that the last ends with the last tap. */
BT_SHARED void bt_triples_run(bt_triples *s)
{
    register bt_triples *base __asm__("r0") = s;
    __asm__ volatile(
        ".syntax unified\n\t"
        "mov r1, r8\n\t"
        "mov r2, r9\n\t"
        "mov r3, r10\n\t"
        "mov r4, r11\n\t"
        "push {r1-r4, r7}\n\t"
        "mov r7, r0\n\t"
        "ldr r0, [r7, %[x]]\n\t"
        "ldr r1, [r7, %[w]]\n"
        /* A window: the accumulators r11, r12 and lr begin with the bias, r10 ends the part. */
        "1:\n\t"
        "ldr r2, [r7, %[terms]]\n\t"
        "ldr r2, [r2]\n\t"
        "mov r11, r2\n\t"
        "mov r12, r2\n\t"
        "mov lr, r2\n\t"
        "ldr r2, [r7, %[first]]\n\t"
        "adds r2, r2, r0\n\t"
        "mov r10, r2\n\t"
        "ldr r3, [r7, %[heads]]\n\t"
        "ldmia r3!, {r4, r5}\n\t"
        "mov r8, r4\n\t"
        "mov r9, r5\n\t"
        "push {r3}\n\t"
        "ldr r2, [r7, %[skipped]]\n\t"
        "ldr r3, [r7, %[skip]]\n\t"
        "ldr r4, [r7, %[words]]\n\t"
        "cmp r4, #0\n\t"
        "bne 4f\n\t"
        "subs r1, r1, r2\n\t"
        "add pc, r3\n\t"
        "nop\n"
        "2:\n\t" BT_TRIPLES_SIXTEEN(BT_TRIPLES_BYTE) "adds r1, #16\n\t"
        "cmp r0, r10\n\t"
        "bne 2b\n"
        /* The three sums */
        "3:\n\t"
        "mov r2, r8\n\t"
        "mov r3, r9\n\t"
        "lsls r4, r2, #11\n\t"
        "asrs r4, r4, #11\n\t"
        "subs r2, r2, r4\n\t"
        "lsrs r2, r2, #21\n\t"
        "lsls r5, r2, #10\n\t"
        "subs r3, r3, r5\n\t"
        "lsls r5, r3, #11\n\t"
        "asrs r5, r5, #11\n\t"
        "subs r3, r3, r5\n\t"
        "asrs r3, r3, #10\n\t"
        "adds r2, r2, r3\n\t"
        "add r11, r4\n\t"
        "add r12, r2\n\t"
        "add lr, r5\n\t"
        "pop {r2}\n\t"
        "ldr r3, [r7, %[heads_end]]\n\t"
        "cmp r2, r3\n\t"
        "beq 6f\n\t"
        /* The next part */
        "ldmia r2!, {r4, r5}\n\t"
        "mov r8, r4\n\t"
        "mov r9, r5\n\t"
        "push {r2}\n\t"
        "movs r2, #128\n\t"
        "lsls r2, r2, #2\n\t"
        "add r10, r2\n\t"
        "b 2b\n"
        /* The same taps with weights in words */
        "4:\n\t"
        "add pc, r3\n\t"
        "nop\n"
        "5:\n\t" BT_TRIPLES_SIXTEEN(BT_TRIPLES_WORD) "cmp r0, r10\n\t"
        "bne 5b\n\t"
        "b 3b\n"
        /* The three outputs */
        "6:\n\t"
        "ldr r1, [r7, %[terms]]\n\t"
        "ldr r1, [r1, #4]\n\t"
        "uxth r5, r1\n\t"
        "lsrs r6, r1, #16\n\t"
        "ldr r4, [r7, %[range]]\n\t"
        "ldr r1, [r7, %[round]]\n\t"
        "mov r8, r1\n\t"
        "ldr r1, [r7, %[lo]]\n\t"
        "mov r9, r1\n\t"
        "ldr r0, [r7, %[y]]\n\t" BT_TRIPLES_OUTPUT("r11") "ldr r1, [r7, %[y1]]\n\t"
        "adds r0, r0, r1\n\t" BT_TRIPLES_OUTPUT("r12") "ldr r1, [r7, %[y2]]\n\t"
        "adds r0, r0, r1\n\t" BT_TRIPLES_OUTPUT("lr")
        /* On to the next window */
        "ldmia r7!, {r0-r6}\n\t" /* x, w, terms, y and three steps */
        "adds r0, r0, r4\n\t"
        "adds r1, r1, r5\n\t"
        "adds r2, r2, r6\n\t"
        "ldr r4, [r7]\n\t"
        "adds r3, r3, r4\n\t"
        "subs r7, #28\n\t"
        "stmia r7!, {r0-r3}\n\t"
        "subs r7, #16\n\t"
        "ldr r2, [r7, %[count]]\n\t"
        "subs r2, #1\n\t"
        "str r2, [r7, %[count]]\n\t"
        "beq 7f\n\t"
        "b 1b\n"
        "7:\n\t"
        "pop {r1-r4, r7}\n\t"
        "mov r8, r1\n\t"
        "mov r9, r2\n\t"
        "mov r10, r3\n\t"
        "mov r11, r4"
        : "+&r"(base)
        : BT_TRIPLES_FIELD(x), BT_TRIPLES_FIELD(w), BT_TRIPLES_FIELD(terms), BT_TRIPLES_FIELD(y),
          BT_TRIPLES_FIELD(heads), BT_TRIPLES_FIELD(heads_end), BT_TRIPLES_FIELD(first), BT_TRIPLES_FIELD(skipped),
          BT_TRIPLES_FIELD(skip), BT_TRIPLES_FIELD(words),
          BT_TRIPLES_FIELD(round), BT_TRIPLES_FIELD(lo), BT_TRIPLES_FIELD(range), BT_TRIPLES_FIELD(y1),
          BT_TRIPLES_FIELD(y2), BT_TRIPLES_FIELD(count)
        : "r1", "r2", "r3", "r4", "r5", "r6", "r12", "lr", "cc", "memory");
}

#endif
