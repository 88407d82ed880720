/* int8 layers on cores whose multiplier gives the low 32 bits of a product and no more is to be had from it
 * (Armv6-M, Armv7-M, RV32): three products out of two multiplications.
 *
 * Two words hold the numbers of three positions, modulo 2^32:
 *
 *     first = x0 + 2^21 * x1        second = x2 + 2^10 * x1
 *
 * Such pairs of words can be added, and multiplied by a weight that the positions share, so a sum of products has the
 * same form. While the three sums stay within 21 bits, they come back exactly: the low 21 bits of `first` are s0, the
 * rest is s1 modulo 2^11; without that, the low 21 bits of `second` are s2, and the rest is what s1 has above. 64 products
 * of bytes always stay within 21 bits, if no weight is -128; longer sums go on in three registers.
 *
 * Weights are bytes with 128 added, as only unsigned bytes can be loaded from an address and a literal offset on
 * Armv6-M. Sums of the inputs themselves, made once for all channels, take that back. */
#ifndef BT_TRIPLES_H
#define BT_TRIPLES_H

#include "bt.h"

#define BT_TRIPLES_TAPS 64 /* products between two unpackings */

/* Windows of three positions at a time, their weights, and how sums become outputs. */
typedef struct {
    /* Where the next window and its weights are, its bias and multiplier, and where the first position's output goes;
     * and how many bytes it is from there to the next. */
    const uint32_t *x;
    const void *w; /* bytes; words if `words` */
    const int32_t *terms;
    int8_t *y;
    int32_t x_step, w_step, term_step, y_step;
    const uint32_t *heads, *heads_end; /* two words for each 64 taps, to begin with; a part is the first */
    int32_t first;                     /* bytes of x in the first part; an even number of taps, as in all parts */
    int32_t skipped, skip;             /* taps that complete the last sixteen of the first part, and their bytes of code */
    int32_t words;                     /* the weights are signed words, and there is one part */
    int32_t round;                     /* 2^15 + ((zero - lo) << 16) */
    int32_t lo, range;                 /* range = hi - lo */
    int32_t y1, y2;                    /* bytes to the second position's output, and from there to the third's */
    int32_t count;                     /* of windows; 1 or more */
} bt_triples;

/* Taps of the first part. */
BT_INLINE int32_t bt_triples_first(int32_t taps)
{
    return (taps - 1) % BT_TRIPLES_TAPS + 1;
}

/* The shared state of windows with `taps` taps, an even number, and these limits. */
BT_INLINE bt_triples bt_triples_of(int32_t taps, int32_t zero, int32_t lo, int32_t hi)
{
    const bt_triples s = {
        .first = 8 * bt_triples_first(taps),
        .skipped = -taps & 15,
        .skip = 11 * (-taps & 15),
        .round = (1 << 15) + (zero - lo) * (1 << 16),
        .lo = lo,
        .range = hi - lo,
    };
    return s;
}

/* The correction for the 128 in the weights, for each part of x: two words. */
BT_INLINE void bt_triples_heads(uint32_t *heads, const uint32_t *x, int32_t taps)
{
    for (int32_t part = bt_triples_first(taps); taps > 0; taps -= part, part = BT_TRIPLES_TAPS) {
        uint32_t first = 0, second = 0;
        for (const uint32_t *const end = x + 2 * part; x != end; x += 2) {
            first -= x[0];
            second -= x[1];
        }
        *heads++ = first << 7;
        *heads++ = second << 7;
    }
}

/* bt_triples_pack and bt_triples_run, with as many rows of weights as have room for their sums in registers. */
#if defined(__ARM_ARCH_6M__)
#include "triples_v6m.h"
#elif defined(__riscv)
#define BT_TRIPLES_ROWS 4
#include "triples_any.h"
#else
#define BT_TRIPLES_ROWS 1
#include "triples_any.h"
#endif

#endif
