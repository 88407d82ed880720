/* Recurrent layers in integers: a loop over time around products of int8 matrices with the input and with the hidden
 * state before. docs/arithmetic.md has the definition.
 *
 * w_ih is [gates * hidden][in], w_hh [gates * hidden][hidden]; a gate is `hidden` rows, in PyTorch's order. `rows` has
 * for each row what is added to the input's sum and to the hidden state's, 256 times the factor of the first plus that
 * of the second, and the multiplier of both. `sigmoid` is the table of 256 pieces. y is the hidden state at every time;
 * h (13 fractional bits) and c (11) are the states at the end. Kernels called `16` have x and y of int16. */
#ifndef BT_QRECURRENT_H
#define BT_QRECURRENT_H

#include "../int8.h"

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
    int32_t shift; /* of sums, before they are multiplied */
    int32_t y_shift; /* from h to y: a shift, a multiplier, y's zero point */
    int32_t multiplier;
    int32_t zero;
} bt_qrecurrent;

/* An LSTM in LiteRT's arithmetic: `biases` has those of each row for the input and for the hidden state, `scales`
 * multiplier and shift of each gate for both. h0 and y have one scale. */
typedef struct {
    int32_t time;
    int32_t batch;
    int32_t in;
    int32_t hidden;
    int32_t x_time;
    int32_t x_batch;
    int32_t y_time;
    int32_t y_batch;
    int32_t cell_bits; /* fractional bits of c, and its limits */
    int32_t cell_lo;
    int32_t cell_hi;
    int32_t multiplier; /* to y, and y's zero point */
    int32_t shift;
    int32_t zero;
} bt_litert;

#ifndef BT_INLINE_KERNELS
/* Those called `zero` begin with states of zeros. scratch: 8 * hidden bytes, gru 6, rnn 2. */
void bt_qlstm_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0, const BT_FLASH int8_t
                  *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid,
                  int8_t *y, int16_t *h, int16_t *c, void *scratch);
void bt_qlstm_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t
                       *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h,
                       int16_t *c, void *scratch);
void bt_qlstm16_ref(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const int16_t *c0, const BT_FLASH
                    int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t
                    *sigmoid, int16_t *y, int16_t *h, int16_t *c, void *scratch);
void bt_qlstm16_zero_ref(const bt_qrecurrent *p, const int16_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t
                         *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int16_t *y, int16_t *h,
                         int16_t *c, void *scratch);
void bt_qgru_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih, const BT_FLASH
                 int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h,
                 void *scratch);
void bt_qgru_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh,
                      const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, void
                      *scratch);
void bt_qgru16_ref(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih, const
                   BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int16_t *y,
                   int16_t *h, void *scratch);
void bt_qgru16_zero_ref(const bt_qrecurrent *p, const int16_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t
                        *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int16_t *y, int16_t *h,
                        void *scratch);
void bt_qrnn_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih, const BT_FLASH
                 int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h,
                 void *scratch);
void bt_qrnn_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh,
                      const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, void
                      *scratch);
void bt_qrnn16_ref(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih, const
                   BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int16_t *y,
                   int16_t *h, void *scratch);
void bt_qrnn16_zero_ref(const bt_qrecurrent *p, const int16_t *x, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t
                        *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int16_t *y, int16_t *h,
                        void *scratch);

/* scratch: 8 * hidden bytes. */
void bt_litert_lstm_ref(const bt_litert *p, const int8_t *x, const int8_t *h0, const int16_t *c0,
                        const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *biases,
                        const BT_FLASH int32_t *scales, int8_t *y, int16_t *c, void *scratch);

/* Weights as those of bt_qlinear_dsp, each gate's apart. Reads up to three bytes after x and h0. */
void bt_litert_lstm_dsp(const bt_litert *p, const int8_t *x, const int8_t *h0, const int16_t *c0, const int32_t *w_ih,
                        const int32_t *w_hh, const int32_t *biases, const int32_t *scales, int8_t *y, int16_t *c,
                        void *scratch);

/* Unit by unit, of rnn four by four. weights are halfwords, factors and all: for each unit what the sums of its gates
 * begin with, of each two inputs and then of each two hidden states a word for each gate, and the gates' multipliers;
 * gru has what the candidate's sum of the hidden state begins with before those. Counts are rounded up to two, and no
 * sum is shifted. scratch: a halfword for each input and each unit, both counts rounded up to two. */
void bt_qlstm_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0, const int32_t *weights,
                  const int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch);
void bt_qlstm_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid, int8_t
                       *y, int16_t *h, int16_t *c, void *scratch);
void bt_qlstm16_dsp(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const int16_t *c0, const int32_t
                    *weights, const int32_t *sigmoid, int16_t *y, int16_t *h, int16_t *c, void *scratch);
void bt_qlstm16_zero_dsp(const bt_qrecurrent *p, const int16_t *x, const int32_t *weights, const int32_t *sigmoid,
                         int16_t *y, int16_t *h, int16_t *c, void *scratch);
void bt_qgru_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int32_t *weights, const int32_t
                 *sigmoid, int8_t *y, int16_t *h, void *scratch);
void bt_qgru_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid, int8_t
                      *y, int16_t *h, void *scratch);
void bt_qgru16_dsp(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const int32_t *weights, const int32_t
                   *sigmoid, int16_t *y, int16_t *h, void *scratch);
void bt_qgru16_zero_dsp(const bt_qrecurrent *p, const int16_t *x, const int32_t *weights, const int32_t *sigmoid,
                        int16_t *y, int16_t *h, void *scratch);
void bt_qrnn_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int32_t *weights, const int32_t
                 *sigmoid, int8_t *y, int16_t *h, void *scratch);
void bt_qrnn_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid, int8_t
                      *y, int16_t *h, void *scratch);
void bt_qrnn16_dsp(const bt_qrecurrent *p, const int16_t *x, const int16_t *h0, const int32_t *weights, const int32_t
                   *sigmoid, int16_t *y, int16_t *h, void *scratch);
void bt_qrnn16_zero_dsp(const bt_qrecurrent *p, const int16_t *x, const int32_t *weights, const int32_t *sigmoid,
                        int16_t *y, int16_t *h, void *scratch);
#endif

#endif
