/* The shared part of reductions and norms: folding the elements of three nested loops into one value.
 *
 * A row is folded in blocks, each from the start, so that the rounding error of a long sum grows with its number of
 * blocks and not with its length: a sum of 4096 floats is off by some 128 roundings at worst, not by 4096. */
#ifndef BT_FOLD_H
#define BT_FOLD_H

#include "../bt.h"

#define BT_FOLD_BLOCK 64

/* A function that folds x[l * step[0] + m * step[1] + n * step[2]] for l, m, n below shape.
 * `term` is what an element v counts for, given c; `join` is what two partial results a and b become. */
#define BT_FOLD(name, T, A, start, term, join)                                                       \
    BT_INLINE A name(const int32_t *shape, const int32_t *step, const T *x, A c)                     \
    {                                                                                                \
        A all = (start);                                                                             \
        (void)c;                                                                                     \
        for (int32_t l = 0; l < shape[0]; l++)                                                       \
            for (int32_t m = 0; m < shape[1]; m++) {                                                 \
                const T *row = x + l * step[0] + m * step[1];                                        \
                for (int32_t n = 0; n < shape[2];) {                                                 \
                    int32_t stop = shape[2] - n > BT_FOLD_BLOCK ? n + BT_FOLD_BLOCK : shape[2];      \
                    A a = (start);                                                                   \
                    for (; n < stop; n++) {                                                          \
                        T v = row[n * step[2]];                                                      \
                        A b = (term);                                                                \
                        a = (join);                                                                  \
                    }                                                                                \
                    A b = all;                                                                       \
                    all = (join);                                                                    \
                }                                                                                    \
            }                                                                                        \
        return all;                                                                                  \
    }

BT_FOLD(bt_fold_sum_f32, float, float, 0.0f, v, a + b)
BT_FOLD(bt_fold_squares_f32, float, float, 0.0f, (v - c) * (v - c), a + b)
BT_FOLD(bt_fold_from_f32, float, float, 0.0f, v - c, a + b)

/* The mean, and the variance as squares summed over `divisor`.
 *
 * The mean is that of distances from the first element: equal elements then have a variance of exactly 0, and where all
 * elements have a large offset, only the rounding of the result is lost. */
BT_INLINE float bt_variance_f32(const int32_t *shape, const int32_t *step, const float *x, float divisor, float *mean)
{
    const float count = (float)(shape[0] * shape[1] * shape[2]), first = count > 0.0f ? x[0] : 0.0f;
    *mean = first + bt_fold_from_f32(shape, step, x, first) / count;
    return bt_fold_squares_f32(shape, step, x, *mean) / divisor;
}

#endif
