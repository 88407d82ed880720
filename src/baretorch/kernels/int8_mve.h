/* What the int8 kernels for Arm cores with Helium share (the M-profile vector extension: Cortex-M55, M85).
 *
 * The work is done by VMLADAVA: 16 products of bytes, added to a general register with an even number. Four output
 * channels of two windows are eight sums, which takes all such registers; each vector of weights is used twice, each of
 * the input four times.
 *
 * Constants are one stream of words: for each four channels their biases, their weights as [taps / 16][4][16] and then
 * [4][taps % 16], and their multipliers. */
#ifndef BT_INT8_MVE_H
#define BT_INT8_MVE_H

#include <arm_mve.h>

#include "int8.h"

/* A layer whose outputs are sums of products, without shift. */
typedef struct {
    int32_t taps; /* products in a sum */
    int32_t out;  /* channels */
    int32_t zero;
    const int32_t *constants;
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

/* y[0..n) limited to lo and hi: int8's own limits cost nothing, others are rare. */
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

/* `step`: what is done to the constants' pointer after a load from `at` */
#define BT_MVE_CHANNEL(at, step, first, second)                                                                        \
    "vldrb.u8 q2, " at "\n\t" step "vmladava.s8 " first ", q0, q2\n\t"                                                 \
    "vmladava.s8 " second ", q1, q2\n\t"
#define BT_MVE_SIXTEEN(at, step)                                                                                       \
    BT_MVE_CHANNEL(at, step, "r0", "r8")                                                                               \
    BT_MVE_CHANNEL(at, step, "r2", "r10")                                                                              \
    BT_MVE_CHANNEL(at, step, "r4", "r12") BT_MVE_CHANNEL(at, step, "r6", "lr")

/* All channels of two windows, to y and z, limited to int8 only. The windows, or the outputs, may be the same. 16
 * instructions for 128 products, and about 32 more for eight outputs. */
BT_INLINE void bt_mve_pair(const bt_mve_layer *l, const int8_t *x_window, const int8_t *z_window, int8_t *y, int8_t *z)
{
    struct {
        const int8_t *x_window, *z_window;
        int8_t *y, *z;
        int32_t left, zero, taps;
    } s = { x_window, z_window, y, z, l->out, l->zero, l->taps };
    const int32_t *k = l->constants;
    const int8_t *x_at, *z_at;
    int32_t n;
    __asm__ volatile("1:\n\t"
                     "ldrd r0, r2, [%[k]]\n\t"
                     "ldrd r8, r10, [%[k]], #8\n\t"
                     "ldrd r4, r6, [%[k]]\n\t"
                     "ldrd r12, lr, [%[k]], #8\n\t"
                     "ldrd %[x], %[z], [%[s]]\n\t"
                     "ldr %[n], [%[s], #24]\n\t"
                     "subs %[n], %[n], #16\n\t"
                     "blt 3f\n"
                     "2:\n\t"
                     "vldrb.u8 q0, [%[x]], #16\n\t"
                     "vldrb.u8 q1, [%[z]], #16\n\t" /**/
                     BT_MVE_SIXTEEN("[%[k]], #16", "") "subs %[n], %[n], #16\n\t"
                     "bge 2b\n"
                     "3:\n\t"
                     "adds %[n], %[n], #16\n\t"
                     "beq 4f\n\t"
                     "vctp.8 %[n]\n\t"
                     "vpstt\n\t"
                     "vldrbt.u8 q0, [%[x]]\n\t"
                     "vldrbt.u8 q1, [%[z]]\n\t" /**/
                     BT_MVE_SIXTEEN("[%[k]]", "add %[k], %[k], %[n]\n\t") "4:\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vmov q1[2], q1[0], r8, r12\n\t"
                     "vmov q1[3], q1[1], r10, lr\n\t"
                     "vldrw.u32 q2, [%[k]], #16\n\t"
                     "ldrd r4, r6, [%[s], #16]\n\t" /* channels left, zero */
                     "ldrd r0, r2, [%[s], #8]\n\t"  /* y, z */
                     "vrmulh.s32 q0, q0, q2\n\t"
                     "vrmulh.s32 q1, q1, q2\n\t"
                     "vqmovnb.s32 q0, q0\n\t" /* halfwords of both in turn */
                     "vqmovnt.s32 q0, q1\n\t"
                     "vqadd.s16 q0, q0, r6\n\t"
                     "vqmovnb.s16 q0, q0\n\t"
                     "vshr.u32 q1, q0, #16\n\t"
                     "vctp.32 r4\n\t"
                     "vpstt\n\t"
                     "vstrbt.32 q0, [r0], #4\n\t"
                     "vstrbt.32 q1, [r2], #4\n\t"
                     "strd r0, r2, [%[s], #8]\n\t"
                     "subs r4, r4, #4\n\t"
                     "str r4, [%[s], #16]\n\t"
                     "bgt 1b"
                     : [k] "+r"(k), [x] "=&r"(x_at), [z] "=&r"(z_at), [n] "=&r"(n)
                     : [s] "r"(&s)
                     : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "q0", "q1", "q2", "cc", "memory");
}

/* `count` windows, the next of which begins `step` bytes behind, to outputs `y_step` apart. */
BT_SHARED void bt_mve_windows(const bt_mve_layer *l, const int8_t *x, int32_t step, int8_t *y, int32_t y_step,
                              int32_t count)
{
    for (; count > 0; count -= 2, x += 2 * step, y += 2 * y_step) {
        const int32_t second = count > 1; /* the last may stand alone: it is done twice */
        bt_mve_pair(l, x, x + second * step, y, y + second * y_step);
    }
}

/* Rows of the input are windows: a linear layer, or a convolution of pixels. They go through scratch two by two, so
 * that y may be x. scratch: two rows */
BT_SHARED void bt_mve_rows(const bt_mve_layer *l, const int8_t *x, int8_t *y, int32_t count, int8_t *scratch)
{
    for (int32_t n; count > 0; count -= n, x += n * l->taps, y += n * l->out) {
        n = count > 1 ? 2 : 1;
        bt_mve_copy(scratch, x, n * l->taps);
        bt_mve_windows(l, scratch, l->taps, y, l->out, n);
    }
}

#endif
