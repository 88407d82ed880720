/* Rows of weights that are 0 but for a band: filter banks. 40 mel filters over 257 powers on mps2-an386: 11,648
 * instructions a row with all weights, 1,944 with these. */
#include "linear.h"

BT_KERNEL void bt_linear_f32_banded(const bt_linear_f32 *p, const float *x, const BT_FLASH float *weight,
                                    const BT_FLASH float *bias, const BT_FLASH int16_t *bands, float *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in) {
        const BT_FLASH float *w = weight;
        const BT_FLASH int16_t *band = bands;
        for (int32_t o = 0; o < p->out; o++, band += 2) {
            const float *at = x + band[0];
            float sum = bias[o], other = 0.0f;
            for (int32_t n = band[1]; n > 0; n--, at += 4, w += 4) {
                sum += at[0] * w[0];
                other += at[1] * w[1];
                sum += at[2] * w[2];
                other += at[3] * w[3];
            }
            *y++ = bt_clamp_f32(sum + other, p->lo, p->hi);
        }
    }
}
