/* qlinear with weights of 4 bits for cores with the DSP extension (Cortex-M4, M7, M33): four rows at a time.
 * See int4_dsp.h. */
#include "qlinear.h"

#include "../int4_dsp.h"

BT_KERNEL void bt_qlinear4_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                               const int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        const int32_t *w = weight;
        const int32_t start = -8 * bt_int4_sum_dsp(x, p->in);
        for (int32_t o = 0; o < p->out; o += 4) {
            int32_t sums[4];
            w = bt_int4_four(sums, x, w, (p->in < BT_INT4_PART ? p->in : BT_INT4_PART) / 4, start);
            for (int32_t i = BT_INT4_PART; i < p->in; i += BT_INT4_PART) {
                int32_t more[4];
                w = bt_int4_four(more, x + i, w, (p->in - i < BT_INT4_PART ? p->in - i : BT_INT4_PART) / 4, 0);
                BT_UNROLL_4
                for (int32_t k = 0; k < 4; k++)
                    sums[k] += more[k];
            }
            BT_UNROLL_8
            for (int32_t k = 0; k < 4; k++) {
                if (p->out % 4 == 0 || o + k < p->out)
                    y[o + k] = bt_requantize(sums[k] + bias[o + k], multiplier[o + k], p->shift, p->zero, p->lo, p->hi);
            }
        }
    }
}
