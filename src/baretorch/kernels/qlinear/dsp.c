/* qlinear for cores with the DSP extension (Cortex-M4, M7, M33): four rows at a time, see dsp_rows.h.
 *
 * A row of inputs is read until its last outputs are written: the output may end where that row begins. */
#include "qlinear.h"

#include "../dsp_rows.h"

BT_KERNEL void bt_qlinear_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++) {
        const int32_t *w = weight;
        int32_t o = 0;
        do {
            int32_t sums[4] = { 0, 0, 0, 0 };
            w = bt_dsp_four(sums, x, w, p->in);
            BT_UNROLL_8
            for (int32_t k = 0; k < 4; k++) {
                if (p->out % 4 == 0 || o + k < p->out)
                    y[o + k] = bt_requantize(sums[k] + bias[o + k], multiplier[o + k], p->shift, p->zero, p->lo, p->hi);
            }
            o += 4;
        } while (o < p->out);
        x += p->in;
        y += p->out;
    }
}
