/* Sums and pools of int16 for Arm cores with Helium: four or eight elements at a time. On a Cortex-M55 a sum of 1,024
 * takes 2,572 instructions (dsp.c: 12,297), the largest of 2x2 windows, 8x8 of 16 channels, 2,586 (ref.c: 33,367), the
 * average 4x4 of 16 channels 2,102 (8,963). */
#include "walk.h"

#include <arm_mve.h>

/* 10 instructions for four sums. */
BT_INLINE void bt_qadd16_row_mve(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y)
{
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi);
    int32x4_t u, v;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrh.s32 %q[v], [%[a]], #8\n\t"
                     "vldrh.s32 %q[u], [%[b]], #8\n\t"
                     "vmul.i32 %q[v], %q[v], %[a_factor]\n\t"
                     "vmla.s32 %q[v], %q[u], %[b_factor]\n\t"
                     "vadd.i32 %q[v], %q[v], %[half]\n\t"
                     "vshl.s32 %q[v], %[shift]\n\t"
                     "vmax.s32 %q[v], %q[v], %q[lo]\n\t"
                     "vmin.s32 %q[v], %q[v], %q[hi]\n\t"
                     "vstrh.32 %q[v], [%[y]], #8\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [a] "+&l"(a), [b] "+&l"(b), [y] "+&l"(y), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(p->shape[3]), [a_factor] "r"(p->a_factor), [b_factor] "r"(p->b_factor),
                       [half] "r"(INT32_C(1) << (p->shift - 1)), [shift] "r"(-p->shift), [lo] "w"(lo), [hi] "w"(hi)
                     : "lr", "cc", "memory");
}

BT_KERNEL void bt_qadd16_mve(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y)
{
    for (int32_t i = 0; i < p->shape[0]; i++)
        for (int32_t j = 0; j < p->shape[1]; j++)
            for (int32_t k = 0; k < p->shape[2]; k++, y += p->shape[3])
                bt_qadd16_row_mve(p, a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2],
                                  b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2], y);
}

BT_INLINE void bt_qmax16_each_mve(const bt_qmax_pool2d *p, const bt_qwindow16 *w, int16_t *y)
{
    (void)p;
    for (int32_t c = 0; c < w->channels; c += 8) {
        const mve_pred16_t inside = vctp16q((uint32_t)(w->channels - c));
        int16x8_t max = vdupq_n_s16(-32768);
        const int16_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int16_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                max = vmaxq_s16(max, vldrhq_z_s16(at, inside));
        }
        vstrhq_p_s16(y + c, max, inside);
    }
}

BT_INLINE void bt_qavg16_each_mve(const bt_qavg_pool2d *p, const bt_qwindow16 *w, int16_t *y)
{
    for (int32_t c = 0; c < w->channels; c += 4) {
        const mve_pred16_t inside = vctp32q((uint32_t)(w->channels - c));
        int32x4_t sums = vdupq_n_s32(0);
        const int16_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int16_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                sums = vaddq_s32(sums, vldrhq_z_s32(at, inside));
        }
        sums = vrmulhq_s32(vshlq_r_s32(sums, p->shift), vdupq_n_s32(p->multiplier));
        sums = vminq_s32(vmaxq_s32(sums, vdupq_n_s32(-32768)), vdupq_n_s32(32767));
        vstrhq_p_s32(y + c, sums, inside);
    }
}

BT_QPOOL16(bt_qmax_pool16_mve, bt_qmax_pool2d, bt_qmax16_each_mve)
BT_QPOOL16(bt_qavg_pool16_mve, bt_qavg_pool2d, bt_qavg16_each_mve)
