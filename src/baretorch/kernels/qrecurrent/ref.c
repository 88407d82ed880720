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

BT_INLINE int32_t bt_row_ref(const BT_FLASH int8_t *w, int32_t wide, const void *x, int32_t n)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (int32_t)w[i] * (wide ? ((const int16_t *)x)[i] : ((const int8_t *)x)[i]);
    return sum;
}

/* The inputs of a step: the input and the hidden state before. */
typedef struct {
    int32_t wide;
    const void *x;
    const int16_t *h;
} bt_before;

typedef enum { BT_OF_X = 1, BT_OF_H = 2, BT_OF_BOTH = 3 } bt_of;

/* The sum of row r. */
BT_INLINE int32_t bt_gate_ref(const bt_qrecurrent *p, bt_of of, bt_before before, const BT_FLASH int8_t *w_ih,
                              const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, int32_t r)
{
    const BT_FLASH int32_t *terms = rows + 4 * r;
    int32_t sum = 0;
    if (of & BT_OF_X)
        sum += terms[0] + (terms[2] >> 8) * bt_row_ref(w_ih + r * p->in, before.wide, before.x, p->in);
    if (of & BT_OF_H)
        sum += terms[1] + (terms[2] & 255) * bt_row_ref(w_hh + r * p->hidden, 1, before.h, p->hidden);
    return bt_scale(sum * (INT32_C(1) << p->shift), terms[3], 0);
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

BT_INLINE void bt_qrecurrent_layer(bt_kind kind, int32_t wide, const bt_qrecurrent *p, const void *x, const int16_t *h0,
                                   const int16_t *c0, const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh,
                                   const BT_FLASH int32_t *rows, const BT_FLASH int32_t *sigmoid, void *y, int16_t *h,
                                   int16_t *c, int16_t *gates)
{
    const int32_t n = p->hidden, count = kind == BT_QLSTM ? 4 * n : kind == BT_QGRU ? 2 * n : n;
    bt_begin(h0, h, p->batch * n);
    if (kind == BT_QLSTM)
        bt_begin(c0, c, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n, c += kind == BT_QLSTM ? n : 0) {
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i), at = b * p->x_batch + t * p->x_time;
            const bt_before before = { wide, wide ? (const void *)((const int16_t *)x + at) : (const int8_t *)x + at, h };
            for (int32_t r = 0; r < count; r++)
                gates[r] = (int16_t)bt_sat16(bt_gate_ref(p, BT_OF_BOTH, before, w_ih, w_hh, rows, r));
            for (int32_t r = 2 * n; kind == BT_QGRU && r < 3 * n; r++) /* the part that the reset gate applies to */
                gates[r] = (int16_t)bt_sat16(bt_gate_ref(p, BT_OF_H, before, w_ih, w_hh, rows, r));
            for (int32_t j = 0; j < n; j++) {
                const int32_t v =
                    kind == BT_QGRU ? bt_gate_ref(p, BT_OF_X, before, w_ih, w_hh, rows, 2 * n + j) : 0;
                h[j] = (int16_t)bt_unit_ref(kind, sigmoid + 128, gates, j, n, v, h[j], c);
                bt_give(p, wide, y, b * p->y_batch + t * p->y_time + j, h[j]);
            }
        }
    }
}

#define BT_REF_WEIGHTS                                                                                                 \
    const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,                            \
        const BT_FLASH int32_t *sigmoid

/* The kernels of an operator with one state, whose input is of type T, of int16 if that is wide. */
#define BT_REF_ONE_STATE(name, kind, T, wide)                                                                              \
    BT_KERNEL void bt_##name##_ref(const bt_qrecurrent *p, const T *x, const int16_t *h0, BT_REF_WEIGHTS, T *y,        \
                                   int16_t *h, void *scratch)                                                          \
    {                                                                                                                  \
        bt_qrecurrent_layer(kind, wide, p, x, h0, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);       \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_zero_ref(const bt_qrecurrent *p, const T *x, BT_REF_WEIGHTS, T *y, int16_t *h,          \
                                        void *scratch)                                                                 \
    {                                                                                                                  \
        bt_qrecurrent_layer(kind, wide, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, h, (int16_t *)scratch);     \
    }
#define BT_REF_TWO_STATES(name, T, wide)                                                                                   \
    BT_KERNEL void bt_##name##_ref(const bt_qrecurrent *p, const T *x, const int16_t *h0, const int16_t *c0,           \
                                   BT_REF_WEIGHTS, T *y, int16_t *h, int16_t *c, void *scratch)                        \
    {                                                                                                                  \
        bt_qrecurrent_layer(BT_QLSTM, wide, p, x, h0, c0, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);     \
    }                                                                                                                  \
    BT_KERNEL void bt_##name##_zero_ref(const bt_qrecurrent *p, const T *x, BT_REF_WEIGHTS, T *y, int16_t *h,          \
                                        int16_t *c, void *scratch)                                                     \
    {                                                                                                                  \
        bt_qrecurrent_layer(BT_QLSTM, wide, p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch); \
    }

BT_REF_TWO_STATES(qlstm, int8_t, 0)
BT_REF_TWO_STATES(qlstm16, int16_t, 1)
BT_REF_ONE_STATE(qgru, BT_QGRU, int8_t, 0)
BT_REF_ONE_STATE(qgru16, BT_QGRU, int16_t, 1)
BT_REF_ONE_STATE(qrnn, BT_QRNN, int8_t, 0)
BT_REF_ONE_STATE(qrnn16, BT_QRNN, int16_t, 1)

BT_LITERT_LSTM(ref, int8_t, bt_qrecurrent_four_ref)
