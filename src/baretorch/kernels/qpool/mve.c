/* int8 pools for Arm cores with Helium: eight channels at a time, or sixteen. */
#include "walk.h"

#include <arm_mve.h>

BT_INLINE void bt_qmax_each_mve(const bt_qmax_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    (void)p;
    for (int32_t c = 0; c < w->channels; c += 16) {
        const mve_pred16_t inside = vctp8q((uint32_t)(w->channels - c));
        int8x16_t max = vdupq_n_s8(-128);
        const int8_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int8_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                max = vmaxq_s8(max, vldrbq_z_s8(at, inside));
        }
        vstrbq_p_s8(y + c, max, inside);
    }
}

/* A vector of sums in halfwords becomes two of accumulators: even channels, odd channels. */
BT_INLINE int32x4_t bt_qavg_scale(const bt_qavg_pool2d *p, int32x4_t sums, int32_t start)
{
    const int32x4_t acc = vshlq_r_s32(vaddq_n_s32(sums, start), p->shift);
    return vaddq_n_s32(vrmulhq_s32(acc, vdupq_n_s32(p->multiplier)), p->zero);
}

BT_INLINE void bt_qavg_each_mve(const bt_qavg_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    const int32_t start = -w->rows * w->columns * p->x_zero;
    for (int32_t c = 0; c < w->channels; c += 8) {
        const mve_pred16_t inside = vctp16q((uint32_t)(w->channels - c));
        int16x8_t sums = vdupq_n_s16(0);
        const int8_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int8_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                sums = vaddq_s16(sums, vldrbq_z_s16(at, inside));
        }
        const int32x4_t even = bt_qavg_scale(p, vmovlbq_s16(sums), start);
        const int32x4_t odd = bt_qavg_scale(p, vmovltq_s16(sums), start);
        int16x8_t both = vqmovntq_s32(vqmovnbq_s32(sums, even), odd);
        both = vminq_s16(vmaxq_s16(both, vdupq_n_s16(-128)), vdupq_n_s16(127));
        vstrbq_p_s16(y + c, both, inside);
    }
}

BT_QPOOL(bt_qavg_pool2d_mve, bt_qavg_pool2d, bt_qavg_each_mve)
BT_QPOOL(bt_qmax_pool2d_mve, bt_qmax_pool2d, bt_qmax_each_mve)
