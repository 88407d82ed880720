/* Four rows of weights of 4 bits on cores with the DSP extension, as bt_qlinear4_dsp has them.
 *
 * A halfword is first + 16 * third + 256 * second + 4096 * fourth, the last with its sign, of one input; 8 is added to
 * the others, so that nothing has to be extended with their signs, and -8 times the sum of the inputs takes that back.
 * What is multiplied is the halfword as it is, its low nibbles, its low byte, and the low nibble of that: the rows are
 * what these sums differ by. 38 instructions for 32 products. */
#ifndef BT_INT4_DSP_H
#define BT_INT4_DSP_H

#include "dsp.h"

#define BT_INT4_PART 504 /* inputs at most of a sum of the fourth row, which has 20 bits: 8 * 128 * 504 < 2^19 */

#define BT_INT4_WORD(u, x)                                                                                             \
    "smlad %[all], " u ", " x ", %[all]\n\t"                                                                           \
    "and %[part], " u ", #0x0f0f0f0f\n\t"                                                                              \
    "smlad %[both], %[part], " x ", %[both]\n\t"                                                                       \
    "uxtb16 " u ", " u "\n\t"                                                                                          \
    "smlad %[byte], " u ", " x ", %[byte]\n\t"                                                                         \
    "uxtb16 %[part], %[part]\n\t"                                                                                      \
    "smlad %[low], %[part], " x ", %[low]\n\t"
#define BT_INT4_FOUR                                                                                                   \
    "ldr %[odd], [%[x]], #4\n\t"                                                                                       \
    "ldrd %[u0], %[u1], [%[w]], #8\n\t"                                                                                \
    "sxtb16 %[even], %[odd]\n\t"                                                                                       \
    "sxtb16 %[odd], %[odd], ror #8\n\t" BT_INT4_WORD("%[u0]", "%[even]") BT_INT4_WORD("%[u1]", "%[odd]")

/* sums[k] = row k of four, over `fours` fours of inputs, at most BT_INT4_PART inputs; returns where the next begin.
 * `start` is added to rows 0 to 2, whose weights are 8 too large. */
BT_INLINE const int32_t *bt_int4_four(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t fours,
                                       int32_t start)
{
    int32_t low = start, byte = 17 * start;
    int32_t both = (int32_t)((uint32_t)start * 257u), all = (int32_t)((uint32_t)start * 273u);
    int32_t even, odd, u0, u1, part;
    __asm__ volatile("lsrs %[part], %[n], #1\n\t"
                     "bcs 2f\n"
                     "1:\n\t" BT_INT4_FOUR "2:\n\t" BT_INT4_FOUR "subs %[n], %[n], #2\n\t"
                     "bgt 1b"
                     : [low] "+&r"(low), [byte] "+&r"(byte), [both] "+&r"(both), [all] "+&r"(all), [x] "+&r"(x),
                       [w] "+&r"(w), [n] "+&r"(fours), [even] "=&r"(even), [odd] "=&r"(odd), [u0] "=&r"(u0),
                       [u1] "=&r"(u1), [part] "=&r"(part)
                     :
                     : "cc", "memory");
    const uint32_t second = (uint32_t)both - (uint32_t)low;
    sums[0] = low;
    sums[1] = (int32_t)second >> 8;
    sums[2] = (byte - low) >> 4;
    sums[3] = (int32_t)((uint32_t)all - (uint32_t)byte - second) >> 12;
    return w;
}

/* The sum of inputs, in fours */
BT_INLINE int32_t bt_int4_sum_dsp(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i += 4) {
        const int32_t word = bt_load4(x + i);
        sum = bt_dual(bt_odd_plus(bt_even_bytes(word), word), 0x00010001, sum);
    }
    return sum;
}

#endif
