/* Recurrent layers: a loop over time around products of constant matrices with the input and with the state before.
 *
 * W is w_ih [gates * hidden][in], U is w_hh [gates * hidden][hidden]; a gate is `hidden` rows, in PyTorch's order.
 *
 *     rnn   h = f(W x + U h + b)                                        f: tanh or relu
 *     lstm  i, f, g, o = W x + U h + b;  c = clamp(sigmoid(f) c + sigmoid(i) tanh(g));
 *           h = sigmoid(o) tanh(c)
 *     gru   r, z = sigmoid(W x + U h + b);  n = tanh(W x + b + r (U h + b'));  h = (1 - z) n + z h
 *
 * bias: [gates * hidden], then b' of gru. y is h at every time; h and c are the states at the end. */
#ifndef BT_RECURRENT_H
#define BT_RECURRENT_H

#include "../bt.h"

typedef struct {
    int32_t time;
    int32_t batch;
    int32_t in;
    int32_t hidden;
    int32_t x_time; /* elements from one time to the next; the same per batch, and for y */
    int32_t x_batch;
    int32_t y_time;
    int32_t y_batch;
    int32_t reverse; /* from the last time to the first */
    int32_t relu;    /* rnn's function */
    float clip;      /* limits lstm's c, on both sides */
} bt_recurrent_f32;

#ifndef BT_INLINE_KERNELS
/* Those called `zero` begin with a state of zeros. scratch: 4 * hidden floats. */
void bt_rnn_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih,
                    const float *w_hh, const float *bias, float *y, float *h);
void bt_rnn_zero_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                         const float *bias, float *y, float *h);
void bt_gru_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih,
                    const float *w_hh, const float *bias, float *y, float *h, void *scratch);
void bt_gru_zero_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                         const float *bias, float *y, float *h, void *scratch);
void bt_lstm_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *c0,
                     const float *w_ih, const float *w_hh, const float *bias, float *y, float *h, float *c,
                     void *scratch);
void bt_lstm_zero_f32_ref(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                          const float *bias, float *y, float *h, float *c, void *scratch);

/* w_ih and w_hh as in_eights packs them; of gru's w_hh the rows of r and z and those of n apart */
void bt_rnn_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih,
                    const float *w_hh, const float *bias, float *y, float *h);
void bt_rnn_zero_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                         const float *bias, float *y, float *h);
void bt_gru_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *w_ih,
                    const float *w_hh, const float *bias, float *y, float *h, void *scratch);
void bt_gru_zero_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                         const float *bias, float *y, float *h, void *scratch);
void bt_lstm_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *h0, const float *c0,
                     const float *w_ih, const float *w_hh, const float *bias, float *y, float *h, float *c,
                     void *scratch);
void bt_lstm_zero_f32_fpu(const bt_recurrent_f32 *p, const float *x, const float *w_ih, const float *w_hh,
                          const float *bias, float *y, float *h, float *c, void *scratch);
#endif

#endif
