/* triples.h in C, for BT_TRIPLES_ROWS windows at a time that read the same x; included there. */
#ifndef BT_TRIPLES_ANY_H
#define BT_TRIPLES_ANY_H

#include "int8.h"

/* Packs count numbers of each position, 1 or more, which are `step` apart, into pairs of words to_step bytes apart. */
BT_INLINE uint32_t *bt_triples_pack(uint32_t *to, int32_t to_step, const int8_t *x0, const int8_t *x1,
                                    const int8_t *x2, int32_t step, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        to[0] = (uint32_t)x0[i * step] + ((uint32_t)x1[i * step] << 21);
        to[1] = (uint32_t)x2[i * step] + ((uint32_t)x1[i * step] << 10);
        to += to_step / 4;
    }
    return to;
}

typedef struct {
    uint32_t first, second;
} bt_triple;

/* Adds the products of x, up to `end`, with weights that are bytes, or words for one row. */
BT_INLINE void bt_triples_add(const bt_triples *s, bt_triple *sums, int32_t rows, const uint32_t *x,
                              const uint32_t *end, int32_t done)
{
    if (s->words) {
        const int32_t *w = (const int32_t *)s->w;
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
