/* Rows of weights of 4 bits for cores that multiply 32 bits and have no DSP extension (Armv6-M, Armv7-M, RV32).
 *
 * A word has four rows and two inputs: nibbles 0, 4 are rows 0, 1 of the first, 1, 5 rows 2, 3, and so on. Two of them,
 * 16 bits apart, are multiplied with an input at once: 15 * 128 * 16 is below 2^15, so sixteen inputs are added up
 * before the halves are taken apart. 20 instructions for 8 products. */
#ifndef BT_INT4_PAIRS_H
#define BT_INT4_PAIRS_H

#include "int4.h"

#define BT_INT4_TURN 8 /* words whose sums stay within halfwords */

/* sums[k] += row k of four, over `words` times two inputs; gives where the next rows begin */
BT_INLINE const uint32_t *bt_int4_pairs_four(int32_t sums[4], const int8_t *x, const uint32_t *w, int32_t words)
{
    const uint32_t two = 0x000f000f;
    while (words > 0) {
        const uint32_t *end = w + (words < BT_INT4_TURN ? words : BT_INT4_TURN);
        uint32_t low = 0, high = 0;
        words -= BT_INT4_TURN;
        for (; w != end; x += 2) {
            const uint32_t word = *w++;
            const uint32_t first = (uint32_t)(int32_t)x[0], second = (uint32_t)(int32_t)x[1];
            low += (word & two) * first;
            high += ((word >> 4) & two) * first;
            low += ((word >> 8) & two) * second;
            high += ((word >> 12) & two) * second;
        }
        const int32_t first = (int16_t)low, third = (int16_t)high;
        sums[0] += first;
        sums[1] += (int32_t)(low - (uint32_t)first) >> 16;
        sums[2] += third;
        sums[3] += (int32_t)(high - (uint32_t)third) >> 16;
    }
    return w;
}

/* All outputs of a row with an even number of inputs. */
BT_INLINE void bt_int4_outputs_pairs(const bt_int4_layer *l, const int8_t *x, const uint8_t *weight,
                                     const int32_t *bias, const int32_t *multiplier, int8_t *y)
{
    const uint32_t *w = (const uint32_t *)(const void *)weight;
    const int32_t start = -8 * bt_int4_sum_ref(x, l->in);
    for (int32_t o = 0; o < l->out; o += 4) {
        int32_t sums[4] = { start, start, start, start };
        w = bt_int4_pairs_four(sums, x, w, l->in >> 1);
        for (int32_t k = 0; k < 4 && o + k < l->out; k++)
            y[o + k] = bt_requantize(sums[k] + bias[o + k], multiplier[o + k], l->shift, l->zero, l->lo, l->hi);
    }
}

#endif
