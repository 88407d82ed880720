/* fpu.h with weights of 16 bits: eight of them are four words, and eight instructions make them floats. */
#ifndef BT_HALF_FPU_H
#define BT_HALF_FPU_H

#include "fpu.h"
#include "half_eights.h"

#define BT_HALVES(a, b, c, d, e, f, g, h)                                                                              \
    "vldmia %[w]!, {s" #e "-s" #h "}\n\t"                                                                              \
    "vcvtb.f32.f16 s" #a ", s" #e "\n\tvcvtb.f32.f16 s" #b ", s" #f "\n\t"                                             \
    "vcvtb.f32.f16 s" #c ", s" #g "\n\tvcvtb.f32.f16 s" #d ", s" #h "\n\t"                                             \
    "vcvtt.f32.f16 s" #e ", s" #e "\n\tvcvtt.f32.f16 s" #f ", s" #f "\n\t"                                             \
    "vcvtt.f32.f16 s" #g ", s" #g "\n\tvcvtt.f32.f16 s" #h ", s" #h "\n\t"
#define BT_HALVES_16 BT_HALVES(16, 17, 18, 19, 20, 21, 22, 23)
#define BT_HALVES_24 BT_HALVES(24, 25, 26, 27, 28, 29, 30, 31)

/* 139 instructions for 64 products. */
BT_INLINE void bt_half_fpu_one_window(const bt_windows *s, const float *x, const bt_halves *w, const float *bias,
                                      float *y, int32_t eights)
{
    const float *at;
    int32_t rows, n;
    BT_FPU_ONE_WINDOW(BT_HALVES_16 BT_HALVES_24, BT_HALVES_16, "4");
}

/* 104 instructions for 64 products. */
BT_INLINE void bt_half_fpu_two_windows(const bt_windows *s, const float *x, const float *z, const bt_halves *w,
                                       const float *bias, float *y, int32_t eights)
{
    const float *at, *at_z;
    float *y_z = y + s->out;
    int32_t rows, n;
    BT_FPU_TWO_WINDOWS(BT_HALVES_24, "4");
}

/* 21 instructions for 8 products. */
BT_INLINE void bt_half_fpu_depthwise_any(const bt_windows *s, const float *x, const bt_halves *w, const float *bias,
                                         float *y, int32_t eights)
{
    const float *at;
    int32_t rows, n;
    BT_FPU_DEPTHWISE(BT_HALVES_16, "4");
}

BT_FPU_DENSE(bt_half_fpu_dense, bt_halves, bt_half_fpu_one_window, bt_half_fpu_two_windows, bt_half_rest)

/* A bt_sums of a depthwise convolution: `weight` points to halves in eights. */
BT_SHARED void bt_half_fpu_depthwise(const bt_windows *s, const float *x, const float *weight, const float *bias,
                                     float *y, int32_t count)
{
    const int32_t full = s->out & ~7;
    const bt_halves *const w = (const bt_halves *)(const void *)weight;
    for (int32_t i = 0; i < count; i++, x += s->x_next, y += s->out) {
        if (full)
            bt_half_fpu_depthwise_any(s, x, w + 8 * s->skipped, bias, y, full / 8);
        bt_half_depthwise_rest(s, x + full, w + full * s->weights + s->skipped, bias + full, y + full, s->out - full);
    }
}

#endif
