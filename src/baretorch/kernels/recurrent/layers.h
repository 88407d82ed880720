/* The three layers, around a function that multiplies a matrix with a vector. */
#ifndef BT_RECURRENT_LAYERS_H
#define BT_RECURRENT_LAYERS_H

#include "recurrent.h"

#include "../math/math.h"

/* y[r] = start[r] + sum over i of w[r][i] * x[i]; y and start may be the same */
typedef void bt_rows(const float *w, const float *x, const float *start, float *y, int32_t count, int32_t n);

/* The time of step i. */
BT_INLINE int32_t bt_recurrent_time(const bt_recurrent_f32 *p, int32_t i)
{
    return p->reverse ? p->time - 1 - i : i;
}

/* In all three, the state before is the last y, or h0; NULL stands for zeros. */

BT_INLINE void bt_rnn_f32(bt_rows *rows, const bt_recurrent_f32 *p, const float *x, const float *h0,
                          const float *w_ih, const float *w_hh, const float *bias, float *y, float *h)
{
    const int32_t n = p->hidden;
    for (int32_t b = 0; b < p->batch; b++) {
        const float *before = h0 ? h0 + b * n : NULL;
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_recurrent_time(p, i);
            float *now = y + b * p->y_batch + t * p->y_time;
            rows(w_ih, x + b * p->x_batch + t * p->x_time, bias, now, n, p->in);
            if (before != NULL)
                rows(w_hh, before, now, now, n, n);
            for (int32_t j = 0; j < n; j++)
                now[j] = p->relu ? bt_clamp_f32(now[j], 0.0f, BT_INF) : bt_tanh_f32(now[j]);
            before = now;
        }
        __builtin_memcpy(h + b * n, before, (size_t)n * sizeof *h);
    }
}

BT_INLINE void bt_gru_f32(bt_rows *rows, const bt_recurrent_f32 *p, const float *x, const float *h0,
                          const float *w_ih, const float *w_hh, const float *bias, float *y, float *h, float *gates)
{
    const int32_t n = p->hidden;
    for (int32_t b = 0; b < p->batch; b++) {
        const float *before = h0 ? h0 + b * n : NULL;
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_recurrent_time(p, i);
            float *now = y + b * p->y_batch + t * p->y_time;
            rows(w_ih, x + b * p->x_batch + t * p->x_time, bias, gates, 3 * n, p->in);
            if (before != NULL) {
                rows(w_hh, before, gates, gates, 2 * n, n);
                rows(w_hh + 2 * n * n, before, bias + 3 * n, gates + 3 * n, n, n);
            } else {
                __builtin_memcpy(gates + 3 * n, bias + 3 * n, (size_t)n * sizeof *gates);
            }
            for (int32_t r = 0; r < 2 * n; r++)
                gates[r] = bt_sigmoid_f32(gates[r]);
            for (int32_t j = 0; j < n; j++) {
                float next = bt_tanh_f32(gates[2 * n + j] + gates[j] * gates[3 * n + j]);
                now[j] = next + gates[n + j] * ((before ? before[j] : 0.0f) - next);
            }
            before = now;
        }
        __builtin_memcpy(h + b * n, before, (size_t)n * sizeof *h);
    }
}

BT_INLINE void bt_lstm_f32(bt_rows *rows, const bt_recurrent_f32 *p, const float *x, const float *h0,
                           const float *c0, const float *w_ih, const float *w_hh, const float *bias, float *y,
                           float *h, float *c, float *gates)
{
    const int32_t n = p->hidden;
    for (int32_t b = 0; b < p->batch; b++) {
        const float *before = h0 ? h0 + b * n : NULL;
        float *cell = c + b * n;
        for (int32_t j = 0; j < n; j++)
            cell[j] = c0 ? c0[b * n + j] : 0.0f;
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_recurrent_time(p, i);
            float *now = y + b * p->y_batch + t * p->y_time;
            rows(w_ih, x + b * p->x_batch + t * p->x_time, bias, gates, 4 * n, p->in);
            if (before != NULL)
                rows(w_hh, before, gates, gates, 4 * n, n);
            for (int32_t r = 0; r < 4 * n; r++) /* the third gate is the candidate */
                gates[r] = r >= 2 * n && r < 3 * n ? bt_tanh_f32(gates[r]) : bt_sigmoid_f32(gates[r]);
            for (int32_t j = 0; j < n; j++) {
                cell[j] = bt_clamp_f32(gates[n + j] * cell[j] + gates[j] * gates[2 * n + j], -p->clip, p->clip);
                now[j] = gates[3 * n + j] * bt_tanh_f32(cell[j]);
            }
            before = now;
        }
        __builtin_memcpy(h + b * n, before, (size_t)n * sizeof *h);
    }
}

/* The kernels of recurrent.h whose names end in `variant`. */
#define BT_RECURRENT_KERNELS(variant, rows)                                                                            \
    BT_KERNEL void bt_rnn_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih, \
                                        const float *w_hh, const float *bias, float *y, float *h)                      \
    {                                                                                                                  \
        bt_rnn_f32(rows, p, x, h0, w_ih, w_hh, bias, y, h);                                                            \
    }                                                                                                                  \
    BT_KERNEL void bt_rnn_zero_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *w_ih,             \
                                             const float *w_hh, const float *bias, float *y, float *h)                 \
    {                                                                                                                  \
        bt_rnn_f32(rows, p, x, NULL, w_ih, w_hh, bias, y, h);                                                          \
    }                                                                                                                  \
    BT_KERNEL void bt_gru_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih, \
                                        const float *w_hh, const float *bias, float *y, float *h, void *scratch)       \
    {                                                                                                                  \
        bt_gru_f32(rows, p, x, h0, w_ih, w_hh, bias, y, h, (float *)scratch);                                          \
    }                                                                                                                  \
    BT_KERNEL void bt_gru_zero_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *w_ih,             \
                                             const float *w_hh, const float *bias, float *y, float *h, void *scratch)  \
    {                                                                                                                  \
        bt_gru_f32(rows, p, x, NULL, w_ih, w_hh, bias, y, h, (float *)scratch);                                        \
    }                                                                                                                  \
    BT_KERNEL void bt_lstm_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *c0,  \
                                         const float *w_ih, const float *w_hh, const float *bias, float *y, float *h,  \
                                         float *c, void *scratch)                                                      \
    {                                                                                                                  \
        bt_lstm_f32(rows, p, x, h0, c0, w_ih, w_hh, bias, y, h, c, (float *)scratch);                                  \
    }                                                                                                                  \
    BT_KERNEL void bt_lstm_zero_f32_##variant(const bt_recurrent_f32 *p, const float *x, const float *w_ih,            \
                                              const float *w_hh, const float *bias, float *y, float *h, float *c,      \
                                              void *scratch)                                                           \
    {                                                                                                                  \
        bt_lstm_f32(rows, p, x, NULL, NULL, w_ih, w_hh, bias, y, h, c, (float *)scratch);                              \
    }

#endif
