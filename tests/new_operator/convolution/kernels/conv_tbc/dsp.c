/* For cores with the DSP extension: products of halfwords. */
#include "conv_tbc.h"

BT_KERNEL void bt_qconv_tbc_dsp(const bt_qconv_tbc *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    for (int32_t t = 0; t < p->out_time; t++)
        for (int32_t n = 0; n < p->batch; n++)
            for (int32_t o = 0; o < p->out; o++) {
                int32_t sum = bias[o];
                for (int32_t k = 0; k < p->kernel; k++) {
                    const int32_t from = t + k - p->pad;
                    for (int32_t i = 0; i < p->in; i++) {
                        const int32_t v =
                            from >= 0 && from < p->time ? x[(from * p->batch + n) * p->in + i] : p->x_zero;
                        const int32_t w = weight[(o * p->kernel + k) * p->in + i];
                        __asm__("smlabb %0, %1, %2, %0" : "+r"(sum) : "r"(v), "r"(w));
                    }
                }
                *y++ = bt_requantize(sum, multiplier[o], p->shift, p->zero, p->lo, p->hi);
            }
}
