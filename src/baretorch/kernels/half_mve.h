/* mve.h with weights of 16 bits: a vector of eight becomes two of floats. */
#ifndef BT_HALF_MVE_H
#define BT_HALF_MVE_H

#include "half_eights.h"
#include "mve.h"

/* vcvtb.f32.f16 q1, q0 and vcvtt.f32.f16 q0, q0, with `p` in q1 and `q` in q0: as numbers, because binutils 2.40 puts
 * registers wrong into the first. */
#define BT_MVE_HALVES "vldrw.u32 %q[q], [%[w]], #16\n\t.inst.w 0xfe3f2e01\n\t.inst.w 0xfe3f1e01\n\t"

/* 12 instructions for 16 products. */
BT_INLINE const bt_halves *bt_half_mve_one_window(const bt_windows *s, bt_mve_eight *sums, const float *x,
                                                  const bt_halves *w)
{
    register float32x4_t p __asm__("q1"), q __asm__("q0");
    int32_t rows, n, i, j;
    BT_MVE_ONE_WINDOW(BT_MVE_HALVES, "4");
    return w;
}

/* 17 instructions for 32 products. */
BT_INLINE const bt_halves *bt_half_mve_two_windows(const bt_windows *s, bt_mve_eight *sums, bt_mve_eight *sums_z,
                                                   const float *x, const float *z, const bt_halves *w)
{
    register float32x4_t p __asm__("q1"), q __asm__("q0");
    int32_t rows, n, i, j, k, l;
    BT_MVE_TWO_WINDOWS(BT_MVE_HALVES, "4");
    return w;
}

/* 9 instructions for 8 products. */
BT_INLINE const bt_halves *bt_half_mve_depthwise_window(const bt_windows *s, bt_mve_eight *sums, const float *x,
                                                        const bt_halves *w)
{
    float32x4_t u, v;
    register float32x4_t p __asm__("q1"), q __asm__("q0");
    int32_t rows, n;
    BT_MVE_DEPTHWISE(BT_MVE_HALVES, "4");
    return w;
}

BT_MVE_DENSE(bt_half_mve_dense, bt_halves, bt_half_mve_one_window, bt_half_mve_two_windows, bt_half_rest)

/* A bt_sums of a depthwise convolution: `weight` points to halves in eights. */
BT_SHARED void bt_half_mve_depthwise(const bt_windows *s, const float *x, const float *weight, const float *bias,
                                     float *y, int32_t count)
{
    const int32_t full = s->out & ~7;
    const bt_halves *const halves = (const bt_halves *)(const void *)weight;
    for (int32_t i = 0; i < count; i++, x += s->x_next, y += s->out) {
        const bt_halves *w = halves + 8 * s->skipped;
        for (int32_t o = 0; o < full; o += 8, w += 8 * s->w_next) {
            bt_mve_eight sums = bt_mve_load(bias + o);
            w = bt_half_mve_depthwise_window(s, &sums, x + o, w);
            bt_mve_store(y + o, sums);
        }
        bt_half_depthwise_rest(s, x + full, halves + full * s->weights + s->skipped, bias + full, y + full,
                               s->out - full);
    }
}

#endif
