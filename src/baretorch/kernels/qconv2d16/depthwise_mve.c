/* Depthwise qconv2d16 for Arm cores with Helium: eight channels at a time, 7 instructions for eight products. Those of
 * channels with even numbers have a vector of sums, and those with odd ones. On a Cortex-M55 the keyword model with all
 * layers in int16 takes 1,412,284 instructions (with ref.c, and one window at a time in mve.c: 6,512,160). */
#include "depthwise.h"

#include <arm_mve.h>

/* Loads that extend take low registers. */
#define BT_TAP                                                                                                         \
    "vldrb.s16 %q[v], [%[w]], #8\n\t"                                                                                  \
    "vldrh.u16 %q[u], [%[x]]\n\t"                                                                                      \
    "add %[x], %[x], %[step]\n\t"                                                                                      \
    "vmullb.s16 %q[t], %q[u], %q[v]\n\t"                                                                               \
    "vmullt.s16 %q[u], %q[u], %q[v]\n\t"                                                                               \
    "vadd.i32 %q[even], %q[even], %q[t]\n\t"                                                                           \
    "vadd.i32 %q[odd], %q[odd], %q[u]\n\t"

BT_SHARED void bt_qconv2d16_depthwise_each_mve(const bt_qconv2d *p, const bt_qconv2d16_view *view,
                                               const int32_t *constants, int16_t *y)
{
    const int32_t step = view->step, columns = view->columns, words = 16 + 2 * p->kernel_h * p->kernel_w;
    for (int32_t block = 0; block < p->in; block += 8, constants += words) {
        const int32_t at = block + 8 <= p->in ? block : p->in - 8; /* the last eight may overlap those before */
        const int16_t *x = view->x + at;
        const int8_t *w = (const int8_t *)(constants + 16) + 8 * view->first;
        int32x4_t even = vld1q_s32(constants), odd = vld1q_s32(constants + 4);
        for (int32_t i = view->rows; i > 0; i--, x += view->row_step, w += 8 * view->skip) {
            int16x8_t u, v;
            int32x4_t t;
            if (columns == 3)
                __asm__ volatile(BT_TAP BT_TAP BT_TAP
                                 : [x] "+&r"(x), [w] "+&l"(w), [even] "+&w"(even), [odd] "+&w"(odd), [t] "=&w"(t),
                                   [u] "=&w"(u), [v] "=&w"(v)
                                 : [step] "r"(step)
                                 : "memory");
            else
                __asm__ volatile("dls lr, %[n]\n"
                                 "1:\n\t" BT_TAP "le lr, 1b"
                                 : [x] "+&r"(x), [w] "+&l"(w), [even] "+&w"(even), [odd] "+&w"(odd), [t] "=&w"(t),
                                   [u] "=&w"(u), [v] "=&w"(v)
                                 : [step] "r"(step), [n] "r"(columns)
                                 : "lr", "cc", "memory");
        }
        even = vrmulhq_s32(vshlq_r_s32(even, p->shift), vld1q_s32(constants + 8));
        odd = vrmulhq_s32(vshlq_r_s32(odd, p->shift), vld1q_s32(constants + 12));
        int16x8_t both = vqmovntq_s32(vqmovnbq_s32(vdupq_n_s16(0), even), odd);
        both = vminq_s16(vmaxq_s16(both, vdupq_n_s16((int16_t)p->lo)), vdupq_n_s16((int16_t)p->hi));
        vst1q_s16(y + at, both);
    }
}

#undef BT_TAP

BT_KERNEL void bt_qconv2d16_depthwise_mve(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y)
{
    bt_qconv2d16_pixels(bt_qconv2d16_depthwise_each_mve, p, x, constants, y);
}
