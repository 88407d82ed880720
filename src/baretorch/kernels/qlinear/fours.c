/* qlinear for cores that multiply 32 bits and have no DSP extension (Armv6-M, Armv7-M, RV32): four rows at a time, so
 * that an input is loaded once for four products. Weights are bytes with 128 added, because Armv6-M loads only unsigned
 * bytes from an address and a literal offset; the sum of the inputs, made once, takes that back. */
#include "qlinear.h"

#if defined(__ARM_ARCH_6M__)

/* Four products in 14 instructions of two bytes. */
#define BT_QLINEAR_ROW(n, sum)                                                                                         \
    "ldrb r3, [r1, #" #n "]\n\t"                                                                                       \
    "muls r3, r2, r3\n\t"                                                                                              \
    "adds " sum ", " sum ", r3\n\t"
#define BT_QLINEAR_INPUT(i, n0, n1, n2, n3)                                                                            \
    "ldrb r2, [r0, #" #i "]\n\t"                                                                                       \
    "sxtb r2, r2\n\t" BT_QLINEAR_ROW(n0, "r4") BT_QLINEAR_ROW(n1, "r5") BT_QLINEAR_ROW(n2, "r6")                       \
        BT_QLINEAR_ROW(n3, "r7")

/* sums[k] += x * w over `in` inputs, 1 or more; eight of them a turn, of which the first begins so far in that the last
 * ends with the last input */
BT_INLINE void bt_qlinear_rows(int32_t sums[4], const int8_t *x, const uint8_t *w, int32_t in)
{
    const int32_t skipped = -in & 7;
    register uintptr_t inputs __asm__("r0") = (uintptr_t)x - (uintptr_t)skipped;
    register uintptr_t weights __asm__("r1") = (uintptr_t)w - 4 * (uintptr_t)skipped;
    register const int8_t *end __asm__("r2") = x + in;
    register int32_t *at __asm__("r3") = sums;
    register int32_t skip __asm__("r4") = 28 * skipped;
    __asm__ volatile(".syntax unified\n\t"
                     "mov r12, r7\n\t"
                     "mov lr, r2\n\t"
                     "mov r2, r4\n\t"
                     "ldmia r3!, {r4-r7}\n\t"
                     "push {r3}\n\t"
                     "add pc, r2\n\t"
                     "nop\n"
                     "1:\n\t" BT_QLINEAR_INPUT(0, 0, 1, 2, 3) BT_QLINEAR_INPUT(1, 4, 5, 6, 7)
                         BT_QLINEAR_INPUT(2, 8, 9, 10, 11) BT_QLINEAR_INPUT(3, 12, 13, 14, 15)
                             BT_QLINEAR_INPUT(4, 16, 17, 18, 19) BT_QLINEAR_INPUT(5, 20, 21, 22, 23)
                                 BT_QLINEAR_INPUT(6, 24, 25, 26, 27) BT_QLINEAR_INPUT(7, 28, 29, 30, 31)
                     "adds r0, #8\n\t"
                     "adds r1, #32\n\t"
                     "cmp r0, lr\n\t"
                     "bne 1b\n\t"
                     "pop {r3}\n\t"
                     "subs r3, #16\n\t"
                     "stmia r3!, {r4-r7}\n\t"
                     "mov r7, r12"
                     : "+r"(inputs), "+r"(weights), "+r"(end), "+r"(at), "+r"(skip)
                     :
                     : "r5", "r6", "r12", "lr", "cc", "memory");
}

#else

BT_INLINE void bt_qlinear_rows(int32_t sums[4], const int8_t *x, const uint8_t *w, int32_t in)
{
    int32_t sum0 = sums[0], sum1 = sums[1], sum2 = sums[2], sum3 = sums[3];
    for (const int8_t *const end = x + in; x != end; x++, w += 4) {
        sum0 += w[0] * *x;
        sum1 += w[1] * *x;
        sum2 += w[2] * *x;
        sum3 += w[3] * *x;
    }
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}

#endif

BT_SHARED void bt_qlinear_four_rows(const bt_qlinear *p, const int8_t *x, const uint8_t *w, const int32_t *terms,
                                    int8_t *y)
{
    int32_t start = 0;
    for (int32_t i = 0; i < p->in; i++)
        start -= x[i];
    start *= 128;
    for (int32_t left = p->out; left > 0; left -= 4) {
        int32_t sums[4] = { start, start, start, start };
        bt_qlinear_rows(sums, x, w, p->in);
        for (int32_t k = 0; k < 4 && k < left; k++) {
            *y++ = bt_requantize_small(sums[k] + terms[0], (uint32_t)terms[1], p->zero, p->lo, p->hi);
            terms += 2;
        }
        w += 4 * p->in;
    }
}

BT_KERNEL void bt_qlinear_fours(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out)
        bt_qlinear_four_rows(p, x, weight, terms, y);
}
