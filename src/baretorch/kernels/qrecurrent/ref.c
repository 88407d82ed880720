#include "litert.h"

BT_INLINE const BT_FLASH void *bt_qrecurrent_four_ref(int32_t sums[4], const int8_t *x, const BT_FLASH void *w,
                                                      int32_t count, int32_t n)
{
    const BT_FLASH int8_t *row = (const BT_FLASH int8_t *)w;
    for (int32_t k = 0; k < 4 && k < count; k++, row += n) {
        for (int32_t i = 0; i < n; i++)
            sums[k] += row[i] * x[i];
    }
    return row;
}

/* What a row of weights [n] gives of x, rounded; `terms` are its bias and multiplier. */
BT_INLINE int32_t bt_row_ref(const BT_FLASH int8_t *w, const int8_t *x, const BT_FLASH int32_t *terms, int32_t shift,
                             int32_t plus, int32_t n)
{
    int32_t sum = terms[0];
    for (int32_t i = 0; i < n; i++)
        sum += w[i] * x[i];
    return bt_scale(sum * (INT32_C(1) << shift), terms[1], plus);
}

/* What a step reads: the input and the hidden state before. */
typedef struct {
    const int8_t *x;
    const int8_t *h;
} bt_before;

/* to[r] = what row r of `count` gives of both, from row `from` on. */
BT_INLINE void bt_gates_ref(const bt_qrecurrent *p, bt_before before, const BT_FLASH int8_t *w_ih,
                            const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, int16_t *to, int32_t count)
{
    for (int32_t r = 0; r < count; r++, rows += 4, w_ih += p->in, w_hh += p->hidden) {
        const int32_t v = bt_row_ref(w_ih, before.x, rows, p->shift_ih, 0, p->in);
        to[r] = (int16_t)bt_sat16(bt_row_ref(w_hh, before.h, rows + 2, p->shift_hh, v, p->hidden));
    }
}

/* Unit j's next hidden state; `gates` has those of all units, one kind after the other. */
BT_INLINE int32_t bt_unit_ref(bt_kind kind, const BT_FLASH int32_t *middle, const int16_t *gates, int32_t j, int32_t n,
                              int32_t v, int32_t h, int16_t *c)
{
    if (kind == BT_QRNN)
        return bt_tanh_q13(middle, gates[j]);
    const int32_t first = bt_sigmoid_q29(middle, gates[j]), second = bt_sigmoid_q29(middle, gates[n + j]);
    if (kind == BT_QGRU)
        return bt_gru_unit(middle, first, second, v, gates[2 * n + j], h);
    const int32_t third = bt_sigmoid_q29(middle, gates[2 * n + j]), fourth = bt_sigmoid_q29(middle, gates[3 * n + j]);
    return bt_lstm_unit(middle, first, second, third, fourth, c + j);
}

BT_INLINE void bt_qrecurrent_layer(bt_kind kind, const bt_qrecurrent *p, const int8_t *x, const int16_t *h0,
                                   const int16_t *c0, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh,
                                   const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h,
                                   int16_t *c, int16_t *gates)
{
    const int32_t n = p->hidden, count = kind == BT_QLSTM ? 4 * n : kind == BT_QGRU ? 2 * n : n;
    int8_t *first = (int8_t *)(gates + (kind == BT_QGRU ? 3 * n : count));
    bt_begin(h0, h, p->batch * n);
    if (kind == BT_QLSTM)
        bt_begin(c0, c, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n, c += kind == BT_QLSTM ? n : 0) {
        bt_before before = { x, first };
        for (int32_t j = 0; j < n; j++)
            first[j] = bt_hidden_i8(p, h[j]);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            before.x = x + b * p->x_batch + t * p->x_time;
            bt_gates_ref(p, before, w_ih, w_hh, rows, gates, count);
            for (int32_t j = 0; kind == BT_QGRU && j < n; j++) { /* what the reset gate applies to */
                const int32_t r = 2 * n + j;
                gates[r] =
                    (int16_t)bt_sat16(bt_row_ref(w_hh + r * n, before.h, rows + 4 * r + 2, p->shift_hh, 0, n));
            }
            for (int32_t j = 0; j < n; j++) {
                const int32_t r = 2 * n + j;
                const int32_t v =
                    kind == BT_QGRU ? bt_row_ref(w_ih + r * p->in, before.x, rows + 4 * r, p->shift_ih, 0, p->in) : 0;
                h[j] = (int16_t)bt_unit_ref(kind, sigmoid + 128, gates, j, n, v, h[j], c);
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before.h = now;
        }
    }
}

BT_KERNEL void bt_qlstm_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                            const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                            const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_qrecurrent_layer(BT_QLSTM, p, x, h0, c0, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);
}

BT_KERNEL void bt_qlstm_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih,
                                 const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                                 const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_qrecurrent_layer(BT_QLSTM, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);
}

BT_KERNEL void bt_qgru_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih,
                           const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid,
                           int8_t *y, int16_t *h, void *scratch)
{
    bt_qrecurrent_layer(BT_QGRU, p, x, h0, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);
}

BT_KERNEL void bt_qgru_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih,
                                const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                                const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_qrecurrent_layer(BT_QGRU, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);
}

BT_KERNEL void bt_qrnn_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih,
                           const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid,
                           int8_t *y, int16_t *h, void *scratch)
{
    bt_qrecurrent_layer(BT_QRNN, p, x, h0, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);
}

BT_KERNEL void bt_qrnn_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih,
                                const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                                const BT_FLASH int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_qrecurrent_layer(BT_QRNN, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);
}

BT_LITERT_LSTM(ref, int8_t, bt_qrecurrent_four_ref)
