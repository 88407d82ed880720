/* int8 layers on cores whose multiplier gives the low 32 bits of a product and no more is to be had from it
 * (Armv6-M, Armv7-M, RV32): three products out of two multiplications.
 *
 * Numbers of three positions stand in two words, modulo 2^32:
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

#include "int8.h"
#if defined(__ARM_ARCH_6M__)
#include "v6m.h"
#endif

#define BT_TRIPLES_TAPS 64 /* products between two unpackings */

/* Windows of three positions at a time, their weights, and what becomes of the sums. */
typedef struct {
    /* Where the next window and its weights lie, its bias and multiplier, and where the first position's output goes;
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

/* What windows of so many taps, an even number, and these limits have in common. */
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

/* Packs count numbers of each position, 1 or more, which lie `step` apart, into pairs of words to_step bytes apart. */
BT_INLINE uint32_t *bt_triples_pack(uint32_t *to, int32_t to_step, const int8_t *x0, const int8_t *x1,
                                    const int8_t *x2, int32_t step, int32_t count)
{
#if defined(__ARM_ARCH_6M__)
    const int32_t to1 = x1 - x0, to2 = x2 - x0;
    const int8_t *middle = x0 + step * count;
    int32_t other = to_step;
    __asm__ volatile(".syntax unified\n\t"
                     "mov r12, %[middle]\n\t"
                     "mov lr, %[other]\n"
                     "1:\n\t"
                     "ldrsb %[middle], [%[x], %[to1]]\n\t"
                     "ldrsb %[other], [%[x], %[to2]]\n\t"
                     "lsls %[middle], %[middle], #10\n\t"
                     "adds %[other], %[other], %[middle]\n\t"
                     "str %[other], [%[to], #4]\n\t"
                     "ldrb %[other], [%[x]]\n\t"
                     "sxtb %[other], %[other]\n\t"
                     "lsls %[middle], %[middle], #11\n\t"
                     "adds %[other], %[other], %[middle]\n\t"
                     "str %[other], [%[to]]\n\t"
                     "add %[to], lr\n\t"
                     "adds %[x], %[x], %[step]\n\t"
                     "cmp %[x], r12\n\t"
                     "bne 1b"
                     : [x] "+l"(x0), [to] "+l"(to), [middle] "+l"(middle), [other] "+l"(other)
                     : [to1] "l"(to1), [to2] "l"(to2), [step] "l"(step)
                     : "r12", "lr", "cc", "memory");
#else
    for (int32_t i = 0; i < count; i++) {
        to[0] = (uint32_t)x0[i * step] + ((uint32_t)x1[i * step] << 21);
        to[1] = (uint32_t)x2[i * step] + ((uint32_t)x1[i * step] << 10);
        to += to_step / 4;
    }
#endif
    return to;
}

/* What takes the 128 in the weights back, for each part of x: two words. */
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

#if defined(__ARM_ARCH_6M__)

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
        : "+r"(base)
        : BT_TRIPLES_FIELD(x), BT_TRIPLES_FIELD(w), BT_TRIPLES_FIELD(terms), BT_TRIPLES_FIELD(y),
          BT_TRIPLES_FIELD(heads), BT_TRIPLES_FIELD(heads_end), BT_TRIPLES_FIELD(first), BT_TRIPLES_FIELD(skipped),
          BT_TRIPLES_FIELD(skip), BT_TRIPLES_FIELD(words),
          BT_TRIPLES_FIELD(round), BT_TRIPLES_FIELD(lo), BT_TRIPLES_FIELD(range), BT_TRIPLES_FIELD(y1),
          BT_TRIPLES_FIELD(y2), BT_TRIPLES_FIELD(count)
        : "r1", "r2", "r3", "r4", "r5", "r6", "r12", "lr", "cc", "memory");
}

#else

/* Windows that read the same x and whose sums fit into registers together. */
#if defined(__riscv)
#define BT_TRIPLES_ROWS 4
#else
#define BT_TRIPLES_ROWS 1
#endif

typedef struct {
    uint32_t first, second;
} bt_triple;

/* Adds the products of x, up to `end`, with weights that are bytes, or words for one row. */
BT_INLINE void bt_triples_add(const bt_triples *s, bt_triple *sums, int32_t rows, const uint32_t *x,
                              const uint32_t *end, int32_t done)
{
    if (s->words) {
        const int32_t *w = s->w;
        for (; x != end; x += 2, w++) {
            sums->first += (uint32_t)*w * x[0];
            sums->second += (uint32_t)*w * x[1];
        }
        return;
    }
    const uint8_t *w[BT_TRIPLES_ROWS];
    for (int32_t k = 0; k < rows; k++)
        w[k] = (const uint8_t *)s->w + k * s->w_step + done;
    for (; x != end; x += 4) {
        const uint32_t x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        BT_UNROLL_8
        for (int32_t k = 0; k < rows; k++) {
            sums[k].first += w[k][0] * x0 + w[k][1] * x2;
            sums[k].second += w[k][0] * x1 + w[k][1] * x3;
            w[k] += 2;
        }
    }
}

BT_INLINE void bt_triples_windows(bt_triples *s, int32_t rows)
{
    const int32_t lo = s->lo, zero = (s->round >> 16) + lo, hi = lo + s->range;
    int32_t acc[BT_TRIPLES_ROWS][3] = { { 0 } };
    const uint32_t *x = s->x;
    int32_t words = s->first / 4;
    for (const uint32_t *head = s->heads; head != s->heads_end; head += 2) {
        bt_triple sums[BT_TRIPLES_ROWS];
        for (int32_t k = 0; k < rows; k++) {
            sums[k].first = head[0];
            sums[k].second = head[1];
        }
        bt_triples_add(s, sums, rows, x, x + words, (int32_t)(x - s->x) / 2);
        for (int32_t k = 0; k < rows; k++) {
            const int32_t s0 = (int32_t)(sums[k].first << 11) >> 11;
            const uint32_t s1 = (sums[k].first - (uint32_t)s0) >> 21;
            const uint32_t rest = sums[k].second - (s1 << 10);
            const int32_t s2 = (int32_t)(rest << 11) >> 11;
            acc[k][0] += s0;
            acc[k][1] += (int32_t)s1 + ((int32_t)(rest - (uint32_t)s2) >> 10);
            acc[k][2] += s2;
        }
        x += words;
        words = 2 * BT_TRIPLES_TAPS;
    }
    /* A byte may be any field of s, for all a compiler knows. */
    const int32_t *terms = s->terms;
    int8_t *y = s->y;
    const int32_t y1 = s->y1, y2 = s->y1 + s->y2, y_step = s->y_step, term_step = s->term_step / 4;
    for (int32_t k = 0; k < rows; k++) {
        const int32_t bias = terms[0];
        const uint32_t multiplier = (uint32_t)terms[1];
        y[0] = bt_requantize_small(bias + acc[k][0], multiplier, zero, lo, hi);
        y[y1] = bt_requantize_small(bias + acc[k][1], multiplier, zero, lo, hi);
        y[y2] = bt_requantize_small(bias + acc[k][2], multiplier, zero, lo, hi);
        terms += term_step;
        y += y_step;
    }
    s->x += rows * s->x_step / 4;
    s->w = (const uint8_t *)s->w + rows * s->w_step;
    s->terms = terms;
    s->y = y;
    s->count -= rows;
}

/* Writes the outputs; x, w, terms, y and count move on. */
BT_SHARED void bt_triples_run(bt_triples *s)
{
    while (BT_TRIPLES_ROWS > 1 && s->count >= BT_TRIPLES_ROWS && s->x_step == 0)
        bt_triples_windows(s, BT_TRIPLES_ROWS);
    while (s->count > 0)
        bt_triples_windows(s, 1);
}

#endif

#endif
