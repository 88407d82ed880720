/* qlinear with few weights that are not zero, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * Of several rows of inputs four are taken together, so that a four of weights is found and extended once for them:
 * 27 instructions for 16 products; of one row 11 for 4. */
#include "qlinear.h"

#include "../dsp.h"

#define BT_SPARSE_ROWS 4

/* The next four of weights, as halfwords, and where its inputs are. */
#define BT_SPARSE_NEXT                                                                                                 \
    const int32_t four = bt_load4(w);                                                                                  \
    const int32_t even = bt_even_bytes(four), odd = bt_odd_bytes(four);                                                \
    at += 4 * *step++;                                                                                                 \
    w += 4

/* sum + a four of weights times inputs */
BT_INLINE int32_t bt_sparse_plus(int32_t sum, int32_t even, int32_t odd, const int8_t *at)
{
    const int32_t inputs = bt_load4(at);
    return bt_dual(odd, bt_odd_bytes(inputs), bt_dual(even, bt_even_bytes(inputs), sum));
}

BT_INLINE void bt_sparse_one(const bt_qlinear *p, const int8_t *x, const int8_t *w, const uint8_t *step,
                             const int16_t *counts, const int32_t *bias, const int32_t *multiplier, int8_t *y)
{
    for (int32_t o = 0; o < p->out; o++) {
        const uint8_t *end = step + counts[o];
        const int8_t *at = x;
        int32_t sum = bias[o];
        BT_UNROLL_4
        while (step != end) {
            BT_SPARSE_NEXT;
            sum = bt_sparse_plus(sum, even, odd, at);
        }
        y[o] = bt_requantize(sum, multiplier[o], p->shift, p->zero, p->lo, p->hi);
    }
}

BT_INLINE void bt_sparse_four(const bt_qlinear *p, const int8_t *x, const int8_t *w, const uint8_t *step,
                              const int16_t *counts, const int32_t *bias, const int32_t *multiplier, int8_t *y)
{
    for (int32_t o = 0; o < p->out; o++, y++) {
        const uint8_t *end = step + counts[o];
        const int8_t *at = x;
        int32_t sum0 = bias[o], sum1 = sum0, sum2 = sum0, sum3 = sum0;
        while (step != end) {
            BT_SPARSE_NEXT;
            sum0 = bt_sparse_plus(sum0, even, odd, at);
            sum1 = bt_sparse_plus(sum1, even, odd, at + p->in);
            sum2 = bt_sparse_plus(sum2, even, odd, at + 2 * p->in);
            sum3 = bt_sparse_plus(sum3, even, odd, at + 3 * p->in);
        }
        y[0] = bt_requantize(sum0, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        y[p->out] = bt_requantize(sum1, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        y[2 * p->out] = bt_requantize(sum2, multiplier[o], p->shift, p->zero, p->lo, p->hi);
        y[3 * p->out] = bt_requantize(sum3, multiplier[o], p->shift, p->zero, p->lo, p->hi);
    }
}

BT_KERNEL void bt_qlinear_sparse_dsp(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const uint8_t *steps,
                                     const int16_t *counts, const int32_t *bias, const int32_t *multiplier, int8_t *y)
{
    int32_t b = 0;
    for (; b + BT_SPARSE_ROWS <= p->batch; b += BT_SPARSE_ROWS) {
        bt_sparse_four(p, x, weight, steps, counts, bias, multiplier, y);
        x += BT_SPARSE_ROWS * p->in;
        y += BT_SPARSE_ROWS * p->out;
    }
    for (; b < p->batch; b++, x += p->in, y += p->out)
        bt_sparse_one(p, x, weight, steps, counts, bias, multiplier, y);
}
