/* Outputs of qlinear, four at a time: the state of bt_qlinear_fours_run. */
#ifndef BT_QLINEAR_FOURS_H
#define BT_QLINEAR_FOURS_H

#include "qlinear.h"

typedef struct {
    const int8_t *x;
    const uint8_t *w;
    const int32_t *terms;
    int8_t *y, *end;   /* one or more outputs */
    int32_t in;        /* one or more */
    int32_t start;     /* -128 * the sum of x */
    int32_t round;     /* 2^15 + ((zero - lo) << 16) */
    int32_t lo, range; /* range = hi - lo */
} bt_qlinear_fours_state;

#endif
