/* The outputs of fours.c on Armv6-M, in assembly. */
#ifndef BT_QLINEAR_FOURS_V6M_H
#define BT_QLINEAR_FOURS_V6M_H

#include "../v6m.h"
#include "fours.h"

#define BT_QLINEAR_FIELD(name) BT_V6M_FIELD(bt_qlinear_fours_state, name)
/* Four products in 14 instructions, 28 bytes of code. */
#define BT_QLINEAR_ROW(n, sum)                                                                                         \
    "ldrb r3, [r1, #" #n "]\n\t"                                                                                       \
    "muls r3, r2, r3\n\t"                                                                                              \
    "add " sum ", r3\n\t"
#define BT_QLINEAR_INPUT(i, n0, n1, n2, n3)                                                                            \
    "ldrb r2, [r0, #" #i "]\n\t"                                                                                       \
    "sxtb r2, r2\n\t" BT_QLINEAR_ROW(n0, "r8") BT_QLINEAR_ROW(n1, "r9") BT_QLINEAR_ROW(n2, "r10")                      \
        BT_QLINEAR_ROW(n3, "r11")
#define BT_QLINEAR_OUTPUT(sum)                                                                                         \
    "ldmia r7!, {r1, r5}\n\t"                                                                                          \
    "add r1, " sum "\n\t"                                                                                              \
    "lsrs r6, r5, #16\n\t"                                                                                             \
    "uxth r5, r5\n\t" BT_V6M_OUTPUT("r12", "lr") "adds r0, #1\n\t"

/* Eight inputs a turn, of which the first begins so far in that the last ends with the last input. */
BT_SHARED void bt_qlinear_fours_run(bt_qlinear_fours_state *s)
{
    register bt_qlinear_fours_state *base __asm__("r0") = s;
    __asm__ volatile(
        ".syntax unified\n\t"
        "mov r1, r8\n\t"
        "mov r2, r9\n\t"
        "mov r3, r10\n\t"
        "mov r4, r11\n\t"
        "push {r1-r4, r7}\n\t"
        "mov r7, r0\n"
        "1:\n\t"
        "ldr r0, [r7, %[x]]\n\t"
        "ldr r1, [r7, %[w]]\n\t"
        "ldr r2, [r7, %[in]]\n\t"
        "adds r3, r0, r2\n\t"
        "mov r12, r3\n\t"
        "negs r4, r2\n\t"
        "movs r5, #7\n\t"
        "ands r4, r5\n\t" /* inputs to leave out */
        "subs r0, r0, r4\n\t"
        "lsls r5, r4, #2\n\t"
        "subs r1, r1, r5\n\t"
        "movs r5, #28\n\t"
        "muls r4, r5, r4\n\t"
        "ldr r5, [r7, %[start]]\n\t"
        "mov r8, r5\n\t"
        "mov r9, r5\n\t"
        "mov r10, r5\n\t"
        "mov r11, r5\n\t"
        "add pc, r4\n\t"
        "nop\n"
        "2:\n\t" BT_QLINEAR_INPUT(0, 0, 1, 2, 3) BT_QLINEAR_INPUT(1, 4, 5, 6, 7) BT_QLINEAR_INPUT(2, 8, 9, 10, 11)
            BT_QLINEAR_INPUT(3, 12, 13, 14, 15) BT_QLINEAR_INPUT(4, 16, 17, 18, 19)
                BT_QLINEAR_INPUT(5, 20, 21, 22, 23) BT_QLINEAR_INPUT(6, 24, 25, 26, 27)
                    BT_QLINEAR_INPUT(7, 28, 29, 30, 31)
        "adds r0, #8\n\t"
        "adds r1, #32\n\t"
        "cmp r0, r12\n\t"
        "bne 2b\n\t"
        /* Outputs, with the terms in r7, until there are no more */
        "str r1, [r7, %[w]]\n\t"
        "ldr r0, [r7, %[y]]\n\t"
        "ldr r4, [r7, %[range]]\n\t"
        "ldr r1, [r7, %[round]]\n\t"
        "mov r12, r1\n\t"
        "ldr r1, [r7, %[lo]]\n\t"
        "mov lr, r1\n\t"
        "ldr r1, [r7, %[end]]\n\t"
        "push {r7}\n\t"
        "ldr r7, [r7, %[terms]]\n\t"
        "push {r1}\n\t" BT_QLINEAR_OUTPUT("r8")
        "pop {r1}\n\t"
        "mov r8, r1\n\t"
        "cmp r0, r8\n\t"
        "beq 3f\n\t" BT_QLINEAR_OUTPUT("r9")
        "cmp r0, r8\n\t"
        "beq 3f\n\t" BT_QLINEAR_OUTPUT("r10")
        "cmp r0, r8\n\t"
        "beq 3f\n\t" BT_QLINEAR_OUTPUT("r11")
        "mov r1, r7\n\t"
        "pop {r7}\n\t"
        "str r0, [r7, %[y]]\n\t"
        "str r1, [r7, %[terms]]\n\t"
        "cmp r0, r8\n\t"
        "beq 4f\n\t"
        "b 1b\n"
        "3:\n\t"
        "pop {r7}\n"
        "4:\n\t"
        "pop {r1-r4, r7}\n\t"
        "mov r8, r1\n\t"
        "mov r9, r2\n\t"
        "mov r10, r3\n\t"
        "mov r11, r4"
        : "+&r"(base)
        : BT_QLINEAR_FIELD(x), BT_QLINEAR_FIELD(w), BT_QLINEAR_FIELD(terms), BT_QLINEAR_FIELD(y),
          BT_QLINEAR_FIELD(end), BT_QLINEAR_FIELD(in), BT_QLINEAR_FIELD(start), BT_QLINEAR_FIELD(round),
          BT_QLINEAR_FIELD(lo), BT_QLINEAR_FIELD(range)
        : "r1", "r2", "r3", "r4", "r5", "r6", "r12", "lr", "cc", "memory");
}

#endif
