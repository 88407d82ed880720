/* Depthwise qconv2d16 for cores with the DSP extension (Cortex-M4, M7, M33): four channels at a time, 10 instructions for
 * four products. On a Cortex-M4F the keyword model with all layers in int16 takes 3,942,544 instructions (with ref.c, and
 * limits one by one in dsp.c: 7,784,909). */
#include "../dsp.h"
#include "depthwise.h"

#define BT_TAP                                                                                                         \
    "ldr %[even], [%[w]], #4\n\t"                                                                                      \
    "ldr %[u], [%[x]]\n\t"                                                                                             \
    "ldr %[v], [%[x], #4]\n\t"                                                                                         \
    "add %[x], %[x], %[step]\n\t"                                                                                      \
    "sxtb16 %[odd], %[even], ror #8\n\t"                                                                               \
    "sxtb16 %[even], %[even]\n\t"                                                                                      \
    "smlabb %[a], %[u], %[even], %[a]\n\t"                                                                             \
    "smlatt %[b], %[u], %[even], %[b]\n\t"                                                                             \
    "smlabb %[c], %[v], %[odd], %[c]\n\t"                                                                              \
    "smlatt %[d], %[v], %[odd], %[d]\n\t"

/* Two sums to two halfwords. */
BT_INLINE int32_t bt_qconv2d16_pair(const bt_qconv2d *p, int32_t a, int32_t b, const int32_t *multiplier)
{
    int32_t low = bt_scale(a * (int32_t)(1 << p->shift), multiplier[0], 0);
    int32_t high = bt_scale(b * (int32_t)(1 << p->shift), multiplier[1], 0);
    __asm__("ssat %0, #16, %0" : "+r"(low));
    __asm__("ssat %0, #16, %0" : "+r"(high));
    return bt_limit_halves(bt_low_pair(low, high), p->lo, p->hi);
}

BT_SHARED void bt_qconv2d16_depthwise_each_dsp(const bt_qconv2d *p, const bt_qconv2d16_view *view,
                                               const int32_t *constants, int16_t *y)
{
    const int32_t step = view->step, columns = view->columns, taps = p->kernel_h * p->kernel_w;
    for (int32_t block = 0; block < p->in; block += 4, constants += 8 + taps) {
        const int32_t at = block + 4 <= p->in ? block : p->in - 4; /* the last four may overlap those before */
        const int16_t *x = view->x + at;
        const int32_t *w = constants + 8 + view->first;
        int32_t a = constants[0], b = constants[1], c = constants[2], d = constants[3];
        for (int32_t i = view->rows; i > 0; i--, x += view->row_step, w += view->skip) {
            int32_t even, odd, u, v;
            if (columns == 3) {
                __asm__ volatile(BT_TAP BT_TAP BT_TAP
                                 : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [x] "+&r"(x), [w] "+&r"(w),
                                   [even] "=&r"(even), [odd] "=&r"(odd), [u] "=&r"(u), [v] "=&r"(v)
                                 : [step] "r"(step)
                                 : "memory");
            } else {
                int32_t left = columns;
                __asm__ volatile("1:\n\t" BT_TAP "subs %[left], %[left], #1\n\t"
                                 "bne 1b"
                                 : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [x] "+&r"(x), [w] "+&r"(w),
                                   [even] "=&r"(even), [odd] "=&r"(odd), [u] "=&r"(u), [v] "=&r"(v), [left] "+&r"(left)
                                 : [step] "r"(step)
                                 : "cc", "memory");
            }
        }
        const int32_t first = bt_qconv2d16_pair(p, a, b, constants + 4);
        const int32_t second = bt_qconv2d16_pair(p, c, d, constants + 6);
        __builtin_memcpy(y + at, &first, 4);
        __builtin_memcpy(y + at + 2, &second, 4);
    }
}

#undef BT_TAP

BT_KERNEL void bt_qconv2d16_depthwise_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y)
{
    bt_qconv2d16_pixels(bt_qconv2d16_depthwise_each_dsp, p, x, constants, y);
}
