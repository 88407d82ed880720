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

/* to[r] = w [count][n] times x, row r, with 12 fractional bits, added to what is there if `add`; `rows` has bias and
 * multiplier of each row, four apart. */
BT_INLINE void bt_gates_ref(const BT_FLASH int8_t *w, const int8_t *x, const BT_FLASH int32_t *rows, int32_t shift,
                            int32_t add, int16_t *to, int32_t count, int32_t n)
{
    for (int32_t r = 0; r < count; r++, w += n, rows += 4) {
        int32_t sum = rows[0];
        for (int32_t i = 0; i < n; i++)
            sum += w[i] * x[i];
        to[r] = (int16_t)bt_sat16(bt_scale(sum * (int32_t)(1 << shift), rows[1], add ? to[r] : 0));
    }
}

BT_INLINE void bt_qlstm(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                        const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                        const BT_FLASH int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, int16_t *gates)
{
    const int32_t n = p->hidden;
    int8_t *first = (int8_t *)(gates + 4 * n);
    bt_begin(h0, h, p->batch * n);
    bt_begin(c0, c, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n, c += n) {
        const int8_t *before = first;
        for (int32_t j = 0; j < n; j++)
            first[j] = bt_hidden_i8(p, h[j]);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_gates_ref(w_ih, x + b * p->x_batch + t * p->x_time, rows, p->shift_ih, 0, gates, 4 * n, p->in);
            bt_gates_ref(w_hh, before, rows + 2, p->shift_hh, 1, gates, 4 * n, n);
            for (int32_t j = 0; j < n; j++) {
                const int16_t *g = gates + j;
                h[j] = (int16_t)bt_lstm_unit(sigmoid + 128, g[0], g[n], g[2 * n], g[3 * n], c + j);
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

BT_INLINE void bt_qgru(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih,
                       const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int16_t *sigmoid,
                       int8_t *y, int16_t *h, int16_t *gates)
{
    const int32_t n = p->hidden;
    int8_t *first = (int8_t *)(gates + 4 * n);
    bt_begin(h0, h, p->batch * n);
    for (int32_t b = 0; b < p->batch; b++, h += n) {
        const int8_t *before = first;
        for (int32_t j = 0; j < n; j++)
            first[j] = bt_hidden_i8(p, h[j]);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_gates_ref(w_ih, x + b * p->x_batch + t * p->x_time, rows, p->shift_ih, 0, gates, 3 * n, p->in);
            bt_gates_ref(w_hh, before, rows + 2, p->shift_hh, 1, gates, 2 * n, n);
            bt_gates_ref(w_hh + 2 * n * n, before, rows + 8 * n + 2, p->shift_hh, 0, gates + 3 * n, n, n);
            for (int32_t j = 0; j < n; j++) {
                const int16_t *g = gates + j;
                h[j] = (int16_t)bt_gru_unit(sigmoid + 128, g[0], g[n], g[2 * n], g[3 * n], h[j]);
                now[j] = bt_hidden_i8(p, h[j]);
            }
            before = now;
        }
    }
}

BT_KERNEL void bt_qlstm_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                            const BT_FLASH int8_t *w_ih, const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                            const BT_FLASH int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_qlstm(p, x, h0, c0, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);
}

BT_KERNEL void bt_qlstm_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih,
                                 const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                                 const BT_FLASH int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_qlstm(p, x, NULL, NULL, w_ih, w_hh, rows, sigmoid, y, h, c, (int16_t *)scratch);
}

BT_KERNEL void bt_qgru_ref(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const BT_FLASH int8_t *w_ih,
                           const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows, const BT_FLASH int16_t *sigmoid,
                           int8_t *y, int16_t *h, void *scratch)
{
    bt_qgru(p, x, h0, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);
}

BT_KERNEL void bt_qgru_zero_ref(const bt_qrecurrent *p, const int8_t *x, const BT_FLASH int8_t *w_ih,
                                const BT_FLASH int8_t *w_hh, const BT_FLASH int32_t *rows,
                                const BT_FLASH int16_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_qgru(p, x, NULL, w_ih, w_hh, rows, sigmoid, y, h, (int16_t *)scratch);
}

BT_LITERT_LSTM(ref, int8_t, bt_qrecurrent_four_ref)
