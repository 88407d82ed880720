/* The outputs of fours.c in C. */
#ifndef BT_QLINEAR_FOURS_ANY_H
#define BT_QLINEAR_FOURS_ANY_H

#include "fours.h"

BT_SHARED void bt_qlinear_fours_run(bt_qlinear_fours_state *s)
{
    const int32_t zero = (s->round >> 16) + s->lo, hi = s->lo + s->range;
    while (s->y != s->end) {
        int32_t sums[4] = { s->start, s->start, s->start, s->start };
        for (int32_t i = 0; i < s->in; i++, s->w += 4) {
            sums[0] += s->w[0] * s->x[i];
            sums[1] += s->w[1] * s->x[i];
            sums[2] += s->w[2] * s->x[i];
            sums[3] += s->w[3] * s->x[i];
        }
        for (int32_t k = 0; k < 4 && s->y != s->end; k++, s->terms += 2)
            *s->y++ = bt_requantize_small(sums[k] + s->terms[0], (uint32_t)s->terms[1], zero, s->lo, hi);
    }
}

#endif
