/* Bilinear resampling for Arm cores with Helium: four channels in 13 instructions. */
#include <arm_mve.h>

#include "qupsample.h"

/* The channels of a pixel between v and its neighbours, of which the ones to the right and below count r and b of 2048
 * parts. */
BT_INLINE void bt_qbilinear_pixel(const int8_t *v, int32_t beside, int32_t below, int32_t r, int32_t b,
                                  int32_t channels, int8_t *y)
{
    const int32_t l = 2048 - r, t = 2048 - b;
    const int32x4_t half = vdupq_n_s32(INT32_C(1) << 21);
    for (int32_t c = 0; c < channels; c += 4) {
        const mve_pred16_t there = vctp32q((uint32_t)(channels - c));
        const int8_t *u = v + c, *w = u + below;
        int32x4_t above = vmulq_n_s32(vldrbq_z_s32(u, there), l);
        int32x4_t under = vmulq_n_s32(vldrbq_z_s32(w, there), l);
        above = vmlaq_n_s32(above, vldrbq_z_s32(u + beside, there), r);
        under = vmlaq_n_s32(under, vldrbq_z_s32(w + beside, there), r);
        const int32x4_t sum = vmlaq_n_s32(vmlaq_n_s32(half, above, t), under, b);
        vstrbq_p_s32(y + c, vshrq_n_s32(sum, 22), there);
    }
}

BT_KERNEL void bt_qupsample_bilinear2d_mve(const bt_qupsample_bilinear2d *p, const int8_t *x, const int16_t *rows,
                                           const int16_t *down, const int16_t *columns, const int16_t *right, int8_t *y)
{
    const int32_t line = p->in_w * p->channels;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * line) {
        for (int32_t h = 0; h < p->out_h; h++) {
            const int32_t below = rows[h] + 1 < p->in_h ? line : 0;
            for (int32_t w = 0; w < p->out_w; w++, y += p->channels)
                bt_qbilinear_pixel(x + rows[h] * line + columns[w] * p->channels,
                                   columns[w] + 1 < p->in_w ? p->channels : 0, below, right[w], down[h], p->channels,
                                   y);
        }
    }
}
