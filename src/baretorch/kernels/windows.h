/* What the kernels of linear layers and convolutions share.
 *
 * Both are the same work: every output is the dot product of its weights with a window of the input, which is some runs
 * of contiguous numbers, one per row of the kernel. Padding costs nothing: the caller clips the window, and the
 * weights that would meet padding are stepped over.
 *
 * Weights are packed so that those of eight outputs for one input are contiguous: [out / 8][weights][8], and then
 * [out % 8][weights] for the outputs left over. */
#ifndef BT_WINDOWS_H
#define BT_WINDOWS_H

#include <stdbool.h>

#include "bt.h"

/* Windows that are alike, side by side in one row of the output. Steps count elements; "weights" are those of one
 * output. */
typedef struct {
    int32_t rows;    /* of the window, without those in the padding; 1 or more */
    int32_t inputs;  /* in each row, without those in the padding; 1 or more */
    int32_t x_step;  /* from the end of a row's inputs to the next row's first */
    int32_t x_next;  /* from one window to the next */
    int32_t w_step;  /* weights between two rows, which would meet padding */
    int32_t w_next;  /* weights from the end of the last row's w_step to the same place of the next outputs */
    int32_t weights; /* of the whole window */
    int32_t skipped; /* weights before the first that is used */
    int32_t out;     /* outputs of each window */
} bt_windows;

/* Operands for assembly that reads the fields through a pointer. */
#define BT_FIELD(name) [name] "i"(offsetof(bt_windows, name))
#define BT_FIELDS BT_FIELD(rows), BT_FIELD(inputs), BT_FIELD(x_step), BT_FIELD(w_step), BT_FIELD(w_next)

/* y[count][out]: the outputs of `count` windows side by side, the first of which begins at `x`. */
typedef void bt_sums(const bt_windows *s, const float *x, const float *weight, const float *bias, float *y,
                     int32_t count);

/* y[i] = clamp(y[i], lo, hi) for i < n */
typedef void bt_limit(float *y, int32_t n, float lo, float hi);

/* y[i] = the larger of a[i] and b[i] for i < n, NaN if either is; `positive` if no number is below 0 */
typedef void bt_larger(float *y, const float *a, const float *b, int32_t n, bool positive);

#endif
