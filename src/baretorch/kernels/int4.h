/* Rows of weights of 4 bits, two in a byte: 16 * second + first, with 8 added to each, which the sum of the inputs takes
 * back. Around a function that multiplies two rows. */
#ifndef BT_INT4_H
#define BT_INT4_H

#include "int8.h"

/* sums[0] += the low nibbles of w times x, sums[1] += the high ones, over n inputs */
typedef void bt_int4_two(int32_t sums[2], const int8_t *x, const BT_FLASH uint8_t *w, int32_t n);

BT_INLINE void bt_int4_two_ref(int32_t sums[2], const int8_t *x, const BT_FLASH uint8_t *w, int32_t n)
{
    int32_t first = sums[0], second = sums[1];
    for (int32_t i = 0; i < n; i++) {
        first += (w[i] & 15) * x[i];
        second += (w[i] >> 4) * x[i];
    }
    sums[0] = first;
    sums[1] = second;
}

/* The sum of n inputs */
typedef int32_t bt_int4_sum(const int8_t *x, int32_t n);

BT_INLINE int32_t bt_int4_sum_ref(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

typedef void bt_int4_copy(int8_t *to, const int8_t *from, int32_t n);

BT_INLINE void bt_int4_copy_ref(int8_t *to, const int8_t *from, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* n weights of which two share a byte, the first below. */
BT_INLINE void bt_int4_expand(int8_t *to, const uint8_t *from, int32_t n)
{
    for (int32_t i = 0; i < n; i += 2, from++) {
        to[i] = (int8_t)((*from & 15) - 8);
        if (i + 1 < n)
            to[i + 1] = (int8_t)((*from >> 4) - 8);
    }
}

/* The parameters that all rows share. */
typedef struct {
    int32_t in, out, shift, zero, lo, hi;
} bt_int4_layer;

/* All outputs of a row of inputs, or of a window. */
typedef void bt_int4_outputs(const bt_int4_layer *l, const int8_t *x, const BT_FLASH uint8_t *w,
                             const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);

BT_INLINE void bt_int4_rows(bt_int4_two *two, bt_int4_sum *sum, const bt_int4_layer *l, const int8_t *x,
                            const BT_FLASH uint8_t *w, const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier,
                            int8_t *y)
{
    const int32_t start = -8 * sum(x, l->in);
    for (int32_t o = 0; o < l->out; o += 2, w += l->in) {
        int32_t sums[2] = { start, start };
        two(sums, x, w, l->in);
        for (int32_t k = 0; k < 2 && o + k < l->out; k++)
            y[o + k] = bt_requantize(sums[k] + bias[o + k], multiplier[o + k], l->shift, l->zero, l->lo, l->hi);
    }
}

BT_INLINE void bt_int4_outputs_ref(const bt_int4_layer *l, const int8_t *x, const BT_FLASH uint8_t *w,
                                   const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    bt_int4_rows(bt_int4_two_ref, bt_int4_sum_ref, l, x, w, bias, multiplier, y);
}

#endif
