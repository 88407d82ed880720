/* What the int8 kernels for Arm cores with Helium share (the M-profile vector extension: Cortex-M55, M85).
 *
 * The work is done by VMLADAVA: 16 products of bytes, added to a general register with an even number. Four output
 * channels at two positions are eight sums, which takes all such registers; each vector of weights is used twice, each
 * of the input four times. */
#ifndef BT_INT8_MVE_H
#define BT_INT8_MVE_H

#include <arm_mve.h>

#include "int8.h"

/* A layer whose outputs are sums of products. */
typedef struct {
    int32_t taps; /* products in a sum */
    int32_t out;  /* channels */
    int32_t shift, zero, lo, hi;
} bt_mve_layer;

/* to[0..n) = from[0..n) */
BT_INLINE void bt_mve_copy(int8_t *to, const int8_t *from, int32_t n)
{
    int8x16_t v;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 %q[v], [%[from]], #16\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+r"(from), [v] "=&w"(v)
                     : [n] "r"(n)
                     : "lr", "cc", "memory");
}

/* to[0..n) = value */
BT_INLINE void bt_mve_fill(int8_t *to, int32_t value, int32_t n)
{
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to)
                     : [n] "r"(n), [v] "w"(vdupq_n_s8((int8_t)value))
                     : "lr", "cc", "memory");
}

/* y[0..n) limited to lo and hi */
BT_INLINE void bt_mve_limit_i8(int8_t *y, int32_t n, int32_t lo, int32_t hi)
{
    int8x16_t v;
    if (lo == -128 && hi == 127)
        return;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 %q[v], [%[y]]\n\t"
                     "vmax.s8 %q[v], %q[v], %q[lo]\n\t"
                     "vmin.s8 %q[v], %q[v], %q[hi]\n\t"
                     "vstrb.8 %q[v], [%[y]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [y] "+r"(y), [v] "=&w"(v)
                     : [n] "r"(n), [lo] "w"(vdupq_n_s8((int8_t)lo)), [hi] "w"(vdupq_n_s8((int8_t)hi))
                     : "lr", "cc", "memory");
}

/* As bt_requantize, but not limited yet. */
BT_INLINE int32x4_t bt_mve_scale(int32x4_t acc, int32x4_t multiplier, int32_t zero)
{
    return vaddq_n_s32(vrmulhq_s32(acc, multiplier), zero);
}

BT_INLINE int32x4_t bt_mve_requantize(const bt_mve_layer *l, int32x4_t acc, int32x4_t multiplier)
{
    const int32x4_t y = bt_mve_scale(vshlq_r_s32(acc, l->shift), multiplier, l->zero);
    return vminq_s32(vmaxq_s32(y, vdupq_n_s32(l->lo)), vdupq_n_s32(l->hi));
}

/* A window in scratch takes its taps and zeros up to a multiple of 16. */
BT_INLINE int32_t bt_mve_window(int32_t taps)
{
    return (taps + 15) & ~15;
}

/* `step`: what is done to the weights' pointer after a load from `at` */
#define BT_MVE_CHANNEL(at, step, first, second)                                                                        \
    "vldrb.u8 %q[v], " at "\n\t" step "vmladava.s8 " first ", %q[p], %q[v]\n\t"                                        \
    "vmladava.s8 " second ", %q[q], %q[v]\n\t"
#define BT_MVE_SIXTEEN(at, step)                                                                                       \
    "vldrb.u8 %q[p], [%[x]], #16\n\t"                                                                                  \
    "vldrb.u8 %q[q], [%[z]], #16\n\t" BT_MVE_CHANNEL(at, step, "r0", "r8") BT_MVE_CHANNEL(at, step, "r2", "r10")       \
        BT_MVE_CHANNEL(at, step, "r4", "r12") BT_MVE_CHANNEL(at, step, "r6", "lr")

/* Sums of four channels for the window x and the one behind it, z; gives where the weights end. 16 instructions for 128
 * products. */
BT_INLINE const int8_t *bt_mve_sums(int32x4_t *x_sums, int32x4_t *z_sums, const int8_t *x, const int8_t *w,
                                    const int32_t *bias, int32_t taps)
{
    int8x16_t p, q, v;
    __asm__ volatile("ldrd r0, r2, [%[z]]\n\t"
                     "ldrd r4, r6, [%[z], #8]\n\t"
                     "add %[z], %[n], #15\n\t"
                     "bic %[z], %[z], #15\n\t"
                     "add %[z], %[z], %[x]\n\t"
                     "mov r8, r0\n\t"
                     "mov r10, r2\n\t"
                     "mov r12, r4\n\t"
                     "mov lr, r6\n\t"
                     "subs %[n], %[n], #16\n\t"
                     "blt 2f\n"
                     "1:\n\t" BT_MVE_SIXTEEN("[%[w]], #16", "") "subs %[n], %[n], #16\n\t"
                     "bge 1b\n"
                     "2:\n\t"
                     "adds %[n], %[n], #16\n\t"
                     "beq 3f\n\t" BT_MVE_SIXTEEN("[%[w]]", "add %[w], %[w], %[n]\n\t") "3:\n\t"
                     "vmov %q[p][2], %q[p][0], r0, r4\n\t"
                     "vmov %q[p][3], %q[p][1], r2, r6\n\t"
                     "vmov %q[q][2], %q[q][0], r8, r12\n\t"
                     "vmov %q[q][3], %q[q][1], r10, lr"
                     : [p] "=&w"(p), [q] "=&w"(q), [v] "=&w"(v), [x] "+r"(x), [z] "+r"(bias), [w] "+r"(w), [n] "+r"(taps)
                     :
                     : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "cc", "memory");
    *x_sums = vreinterpretq_s32_s8(p);
    *z_sums = vreinterpretq_s32_s8(q);
    return w;
}

/* All channels for windows that lie one after the other in scratch, two at a time: of the first two to y and z; or,
 * where z is null, of the largest sums of all `windows`, an even number, to y.
 *
 * weight: for each four channels [taps / 16][4][16] and then [4][taps % 16]; and as many bytes behind the last as lack
 * to a multiple of 16. bias and multiplier: a multiple of four. */
BT_SHARED void bt_mve_outputs(const bt_mve_layer *l, const int8_t *x, int32_t windows, const int8_t *weight,
                              const int32_t *bias, const int32_t *multiplier, int8_t *y, int8_t *z)
{
    const int32_t size = bt_mve_window(l->taps);
    for (int32_t o = 0; o < l->out; o += 4) {
        int32x4_t x_sums, z_sums;
        const int8_t *next = bt_mve_sums(&x_sums, &z_sums, x, weight, bias + o, l->taps);
        const int32x4_t m = vld1q_s32(multiplier + o);
        const mve_pred16_t inside = vctp32q((uint32_t)(l->out - o));
        if (z) {
            vstrbq_p_s32(z + o, bt_mve_requantize(l, z_sums, m), inside);
        } else {
            x_sums = vmaxq_s32(x_sums, z_sums);
            for (int32_t k = 2; k < windows; k += 2) {
                int32x4_t x_more, z_more;
                bt_mve_sums(&x_more, &z_more, x + k * size, weight, bias + o, l->taps);
                x_sums = vmaxq_s32(x_sums, vmaxq_s32(x_more, z_more));
            }
        }
        vstrbq_p_s32(y + o, bt_mve_requantize(l, x_sums, m), inside);
        weight = next;
    }
}

/* Windows that are whole rows of the input: a linear layer, or a convolution of pixels. scratch: two windows */
BT_SHARED void bt_mve_rows(const bt_mve_layer *l, const int8_t *x, int32_t rows, const int8_t *weight,
                           const int32_t *bias, const int32_t *multiplier, int8_t *y, int8_t *scratch)
{
    const int32_t size = bt_mve_window(l->taps);
    bt_mve_fill(scratch, 0, 2 * size);
    for (int32_t r = 0; r < rows; r += 2) {
        const int32_t step = r + 1 < rows; /* the last row may stand alone: it is done twice */
        bt_mve_copy(scratch, x, l->taps);
        bt_mve_copy(scratch + size, x + step * l->taps, l->taps);
        bt_mve_outputs(l, scratch, 2, weight, bias, multiplier, y, y + step * l->out);
        x += 2 * l->taps;
        y += 2 * l->out;
    }
}

#endif
