/* Sums of products for computers, whose vectors hold four floats: see windows.h. Every output is summed in the order of
 * the portable convolution, its bias last, so that it has the same bits; but many of them at a time.
 *
 * Four windows together use each vector of weights four times: 24 instructions for 32 products. */
#ifndef BT_VECTORS_H
#define BT_VECTORS_H

#include "windows.h"

typedef float bt_four __attribute__((vector_size(16), aligned(4), may_alias)); /* anywhere in memory */

/* y[together][8] of eight outputs, whose windows begin x_next apart; gives where their weights end. `together` is a
 * literal. */
BT_INLINE const float *bt_vectors_windows(const bt_windows *s, const float *x, const float *w, const float *bias,
                                          float *y, int32_t together)
{
    bt_four low[4], high[4];
    for (int32_t k = 0; k < together; k++)
        low[k] = high[k] = (bt_four){0.0f, 0.0f, 0.0f, 0.0f};
    for (int32_t r = 0; r < s->rows; r++, x += s->x_step, w += 8 * s->w_step) {
        for (int32_t i = 0; i < s->inputs; i++, x++, w += 8) {
            const bt_four a = *(const bt_four *)w, b = *(const bt_four *)(w + 4);
            for (int32_t k = 0; k < together; k++) {
                low[k] += x[k * s->x_next] * a;
                high[k] += x[k * s->x_next] * b;
            }
        }
    }
    for (int32_t k = 0; k < together; k++) {
        *(bt_four *)(y + k * s->out) = low[k] + *(const bt_four *)bias;
        *(bt_four *)(y + k * s->out + 4) = high[k] + *(const bt_four *)(bias + 4);
    }
    return w + 8 * s->w_next;
}

/* y[0..rest) of one window: outputs that fill no eight. `w`: [rest][weights], from the first weight used. */
BT_INLINE void bt_vectors_rest(const bt_windows *s, const float *x, const float *w, const float *bias, float *y,
                            int32_t rest)
{
    for (int32_t o = 0; o < rest; o++, w += s->weights) {
        const float *at = x, *row = w;
        float sum = 0.0f;
        for (int32_t r = 0; r < s->rows; r++, at += s->x_step, row += s->w_step)
            for (int32_t i = 0; i < s->inputs; i++)
                sum += *at++ * *row++;
        y[o] = sum + bias[o];
    }
}

BT_SHARED void bt_vectors_dense(const bt_windows *s, const float *x, const float *weight, const float *bias, float *y,
                             int32_t count)
{
    int32_t rest = s->out & 7;
    int32_t full = s->out - rest;
    const float *w_rest = weight + full * s->weights + s->skipped;
    for (int32_t i = 0, together; i < count; i += together, x += together * s->x_next, y += together * s->out) {
        const float *w = weight + 8 * s->skipped;
        together = count - i >= 4 ? 4 : 1;
        for (int32_t o = 0; o < full; o += 8)
            w = together == 4 ? bt_vectors_windows(s, x, w, bias + o, y + o, 4)
                              : bt_vectors_windows(s, x, w, bias + o, y + o, 1);
        for (int32_t k = 0; k < together; k++)
            bt_vectors_rest(s, x + k * s->x_next, w_rest, bias + full, y + k * s->out + full, rest);
    }
}

/* Windows of a depthwise convolution; `inputs` counts the pixels in a row of the window. */
BT_SHARED void bt_vectors_depthwise(const bt_windows *s, const float *x, const float *weight, const float *bias,
                                   float *y, int32_t count)
{
    int32_t full = s->out & ~7;
    for (int32_t i = 0; i < count; i++, x += s->x_next, y += s->out) {
        const float *w = weight + 8 * s->skipped;
        for (int32_t o = 0; o < full; o += 8, w += 8 * s->w_next) {
            const float *at = x + o;
            bt_four low = {0.0f, 0.0f, 0.0f, 0.0f}, high = low;
            for (int32_t r = 0; r < s->rows; r++, at += s->x_step, w += 8 * s->w_step) {
                for (int32_t k = 0; k < s->inputs; k++, at += s->out, w += 8) {
                    low += *(const bt_four *)at * *(const bt_four *)w;
                    high += *(const bt_four *)(at + 4) * *(const bt_four *)(w + 4);
                }
            }
            *(bt_four *)(y + o) = low + *(const bt_four *)(bias + o);
            *(bt_four *)(y + o + 4) = high + *(const bt_four *)(bias + o + 4);
        }
        for (int32_t o = full; o < s->out; o++) {
            const float *at = x + o, *row = weight + o * s->weights + s->skipped;
            float sum = 0.0f;
            for (int32_t r = 0; r < s->rows; r++, at += s->x_step, row += s->w_step)
                for (int32_t k = 0; k < s->inputs; k++, at += s->out)
                    sum += *at * *row++;
            y[o] = sum + bias[o];
        }
    }
}

BT_INLINE void bt_vectors_limit(float *y, int32_t n, float lo, float hi)
{
    for (int32_t i = 0; i < n; i++)
        y[i] = bt_clamp_f32(y[i], lo, hi);
}

BT_INLINE void bt_vectors_larger(float *y, const float *a, const float *b, int32_t n, bool positive)
{
    (void)positive;
    for (int32_t i = 0; i < n; i++)
        y[i] = bt_max_f32(a[i], b[i]);
}

#endif
