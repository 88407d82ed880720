/* Four rows of weights of 4 bits on cores with the DSP extension, as bt_qlinear4_dsp has them. */
#ifndef BT_INT4_DSP_H
#define BT_INT4_DSP_H

#include "dsp.h"

#define BT_INT4_WORD(x)                                                                                                \
    "ldr %[u], [%[w]], #4\n\t"                                                                                         \
    "and %[part], %[mask], %[u]\n\t"                                                                                   \
    "smlad %[both0], %[part], " x ", %[both0]\n\t"                                                                     \
    "uxtb16 %[part], %[part]\n\t"                                                                                      \
    "smlad %[low0], %[part], " x ", %[low0]\n\t"                                                                       \
    "and %[u], %[mask], %[u], lsr #4\n\t"                                                                              \
    "smlad %[both1], %[u], " x ", %[both1]\n\t"                                                                        \
    "uxtb16 %[u], %[u]\n\t"                                                                                            \
    "smlad %[low1], %[u], " x ", %[low1]\n\t"
#define BT_INT4_FOUR                                                                                                   \
    "ldr %[odd], [%[x]], #4\n\t"                                                                                       \
    "sxtb16 %[even], %[odd]\n\t"                                                                                       \
    "sxtb16 %[odd], %[odd], ror #8\n\t" BT_INT4_WORD("%[even]") BT_INT4_WORD("%[odd]")

/* sums[k] = row k of four, over so many fours of inputs; gives where the next rows begin. `start` is -8 times the sum
 * of the inputs. */
BT_INLINE const int32_t *bt_int4_four(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t fours,
                                       int32_t start)
{
    int32_t low0 = start, low1 = start;
    int32_t both0 = (int32_t)((uint32_t)start * 257u), both1 = both0;
    int32_t even, odd, u, part;
    __asm__ volatile("lsrs %[part], %[n], #1\n\t"
                     "bcs 2f\n"
                     "1:\n\t" BT_INT4_FOUR "2:\n\t" BT_INT4_FOUR "subs %[n], %[n], #2\n\t"
                     "bgt 1b"
                     : [low0] "+r"(low0), [both0] "+r"(both0), [low1] "+r"(low1), [both1] "+r"(both1), [x] "+r"(x),
                       [w] "+r"(w), [n] "+r"(fours), [even] "=&r"(even), [odd] "=&r"(odd), [u] "=&r"(u),
                       [part] "=&r"(part)
                     : [mask] "r"(0x0f0f0f0f)
                     : "cc", "memory");
    sums[0] = low0;
    sums[1] = (both0 - low0) >> 8;
    sums[2] = low1;
    sums[3] = (both1 - low1) >> 8;
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
