/* What the int8 kernels for Arm cores with Helium share (the M-profile vector extension: Cortex-M55, M85).
 *
 * The work is done by VMLADAVA: 16 products of bytes, added to a general register with an even number. Four output
 * channels of two windows are eight sums, which takes all such registers; each vector of weights is used twice, each of
 * the input four times. Four channels of all windows come first, then the next four.
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

/* `step`: what is done to the weights' pointer after a load from `at` */
#define BT_MVE_CHANNEL(mla, at, step, first, second)                                                                   \
    "vldrb.u8 q2, " at "\n\t" step mla " " first ", q0, q2\n\t" mla " " second ", q1, q2\n\t"
#define BT_MVE_CHANNELS(mla, at, step)                                                                                 \
    BT_MVE_CHANNEL(mla, at, step, "r0", "r8")                                                                          \
    BT_MVE_CHANNEL(mla, at, step, "r2", "r10")                                                                         \
    BT_MVE_CHANNEL(mla, at, step, "r4", "r12") BT_MVE_CHANNEL(mla, at, step, "r6", "lr")
#define BT_MVE_SIXTEEN(mla)                                                                                            \
    "vldrb.u8 q0, [%[x]], #16\n\t"                                                                                     \
    "vldrb.u8 q1, [%[z]], #16\n\t" BT_MVE_CHANNELS(mla, "[%[k]], #16", "")

/* Sums of two windows, in q0 and q1, to bytes: of the first in q0's words, of the second in q1's. */
#define BT_MVE_NARROW(bias, m, zero)                                                                                   \
    "vadd.i32 q0, q0, " bias "\n\t"                                                                                    \
    "vadd.i32 q1, q1, " bias "\n\t"                                                                                    \
    "vrmulh.s32 q0, q0, " m "\n\t"                                                                                     \
    "vrmulh.s32 q1, q1, " m "\n\t"                                                                                     \
    "vqmovnb.s32 q0, q0\n\t" /* halfwords of both in turn */                                                           \
    "vqmovnt.s32 q0, q1\n\t"                                                                                           \
    "vqadd.s16 q0, q0, " zero "\n\t"                                                                                   \
    "vqmovnb.s16 q0, q0\n\t"                                                                                           \
    "vshr.u32 q1, q0, #16\n\t"

/* Windows, two by two, and where their outputs go. A window may be done twice, to the same place. */
typedef struct {
    const int8_t *x, *z;
    int32_t x_step; /* from both to the next two */
    int8_t *y;
    int32_t z_at; /* where the second's outputs lie from the first's */
    int32_t y_step;
    int32_t pairs;
} bt_mve_pairs;

/* Four channels of windows of at most 16 bytes, whose weights stay in registers: 31 instructions for eight outputs. 16
 * bytes are read of each window. */
BT_INLINE void bt_mve_short(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int8_t *y)
{
    const int8_t *x = p->x, *z = p->z;
    const mve_pred16_t used = vctp8q((uint32_t)l->taps);
    const int8_t *const weights = (const int8_t *)(k + 4);
    const int8x16_t w0 = vldrbq_z_s8(weights, used), w1 = vldrbq_z_s8(weights + l->taps, used);
    const int8x16_t w2 = vldrbq_z_s8(weights + 2 * l->taps, used), w3 = vldrbq_z_s8(weights + 3 * l->taps, used);
    int32_t a = p->pairs, b, c, d;
    __asm__ volatile("dls lr, %[a]\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[x]]\n\t"
                     "add %[x], %[x], %[x_step]\n\t"
                     "vldrb.u8 q1, [%[z]]\n\t"
                     "add %[z], %[z], %[x_step]\n\t"
                     "vmladav.s8 %[a], q0, %q[w0]\n\t"
                     "vmladav.s8 %[b], q0, %q[w1]\n\t"
                     "vmladav.s8 %[c], q0, %q[w2]\n\t"
                     "vmladav.s8 %[d], q0, %q[w3]\n\t"
                     "vmov q0[2], q0[0], %[a], %[c]\n\t"
                     "vmov q0[3], q0[1], %[b], %[d]\n\t"
                     "vmladav.s8 %[a], q1, %q[w0]\n\t"
                     "vmladav.s8 %[b], q1, %q[w1]\n\t"
                     "vmladav.s8 %[c], q1, %q[w2]\n\t"
                     "vmladav.s8 %[d], q1, %q[w3]\n\t"
                     "vmov q1[2], q1[0], %[a], %[c]\n\t"
                     "vmov q1[3], q1[1], %[b], %[d]\n\t" /**/
                     BT_MVE_NARROW("%q[bias]", "%q[m]", "%[zero]") "vstrb.32 q0, [%[y]]\n\t"
                     "add %[y], %[y], %[z_at]\n\t"
                     "vstrb.32 q1, [%[y]]\n\t"
                     "add %[y], %[y], %[y_step]\n\t"
                     "le lr, 1b"
                     : [x] "+r"(x), [z] "+r"(z), [y] "+l"(y), [a] "+&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c),
                       [d] "=&Te"(d)
                     : [x_step] "r"(p->x_step), [z_at] "r"(p->z_at),
                       [y_step] "r"(p->y_step - p->z_at), [zero] "r"(l->zero), [w0] "w"(w0), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3), [bias] "w"(vld1q_s32(k)),
                       [m] "w"(vld1q_s32(k + 4 + l->taps))
                     : "lr", "q0", "q1", "cc", "memory");
}

/* `fours` times four channels of longer windows: 14 instructions for 128 products, about 30 more for eight outputs, and
 * 20 for four channels. */
BT_INLINE void bt_mve_long(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours)
{
    const int32_t sixteens = l->taps / 16;
    struct {
        int32_t back, z_at, y_step; /* from behind a window to the next; from its outputs to the other's and on */
        int8_t *y, *end;
        const int32_t *weights;
        int32_t more, rest; /* vectors behind the first, and taps behind them */
        const int8_t *x, *z;
        int8_t *first;
        int32_t bytes, fours; /* of four channels' weights; to go */
    } s = { p->x_step - 16 * sixteens,
            p->z_at,
            p->y_step - p->z_at,
            p->y,
            p->y + p->pairs * p->y_step,
            k,
            sixteens - 1,
            l->taps % 16,
            p->x,
            p->z,
            p->y,
            4 * l->taps,
            fours };
    const int8_t *x, *z;
    int32_t n;
    __asm__ volatile("0:\n\t"
                     "vldrw.u32 q3, [%[k]], #16\n\t"
                     "str %[k], [%[s], #20]\n\t"
                     "ldr %[n], [%[s], #44]\n\t"
                     "add %[n], %[n], %[k]\n\t"
                     "vldrw.u32 q4, [%[n]]\n\t"
                     "ldrd %[x], %[z], [%[s], #32]\n"
                     "1:\n\t"
                     "ldrd %[k], %[n], [%[s], #20]\n\t" /**/
                     BT_MVE_SIXTEEN("vmladav.s8") "lsrs %[n], %[n], #1\n\t"
                     "bcc 2f\n\t" /**/
                     BT_MVE_SIXTEEN("vmladava.s8") "2:\n\t"
                     "beq 4f\n"
                     "3:\n\t" /**/
                     BT_MVE_SIXTEEN("vmladava.s8") BT_MVE_SIXTEEN("vmladava.s8") "subs %[n], %[n], #1\n\t"
                     "bne 3b\n"
                     "4:\n\t"
                     "ldr %[n], [%[s], #28]\n\t"
                     "cbz %[n], 5f\n\t"
                     "vctp.8 %[n]\n\t"
                     "vpstt\n\t"
                     "vldrbt.u8 q0, [%[x]]\n\t"
                     "vldrbt.u8 q1, [%[z]]\n\t" /**/
                     BT_MVE_CHANNELS("vmladava.s8", "[%[k]]", "add %[k], %[k], %[n]\n\t") "5:\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vmov q1[2], q1[0], r8, r12\n\t"
                     "vmov q1[3], q1[1], r10, lr\n\t"
                     "ldm %[s], {r0, r2, r4, r6, r8}\n\t" /**/
                     BT_MVE_NARROW("q3", "q4", "%q[zero]") "vstrb.32 q0, [r6]\n\t"
                     "add r6, r6, r2\n\t"
                     "vstrb.32 q1, [r6]\n\t"
                     "add r6, r6, r4\n\t"
                     "str r6, [%[s], #12]\n\t"
                     "add %[x], %[x], r0\n\t"
                     "add %[z], %[z], r0\n\t"
                     "cmp r6, r8\n\t"
                     "bne 1b\n\t"
                     "ldrd r0, r2, [%[s], #40]\n\t" /* the next four channels */
                     "ldr %[n], [%[s], #48]\n\t"
                     "ldr %[k], [%[s], #20]\n\t"
                     "add r2, r2, #16\n\t"
                     "add %[k], %[k], r2\n\t"
                     "add r0, r0, #4\n\t"
                     "str r0, [%[s], #40]\n\t"
                     "add r8, r8, #4\n\t"
                     "strd r0, r8, [%[s], #12]\n\t"
                     "subs %[n], %[n], #1\n\t"
                     "str %[n], [%[s], #48]\n\t"
                     "bne 0b"
                     : [k] "+r"(k), [x] "=&r"(x), [z] "=&r"(z), [n] "=&l"(n)
                     : [s] "r"(&s), [zero] "w"(vdupq_n_s16((int16_t)l->zero))
                     : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "q0", "q1", "q2", "q3", "q4", "cc", "memory");
}

/* The outputs of `fours` times four channels. */
BT_SHARED void bt_mve_fours(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours)
{
    if (l->taps > 16)
        bt_mve_long(l, k, p, fours);
    else
        for (int32_t i = 0; i < fours; i++, k += l->taps + 8)
            bt_mve_short(l, k, p, p->y + 4 * i);
}

/* All channels, limited to int8 only. */
BT_SHARED void bt_mve_outputs(const bt_mve_layer *l, const bt_mve_pairs *p)
{
    const int32_t fours = l->out / 4, few = l->out % 4;
    if (fours)
        bt_mve_fours(l, l->constants, p, fours);
    for (int32_t i = 0; few && i < p->pairs; i++) { /* channels that fill no four */
        int8_t last[8], *const y = p->y + i * p->y_step + fours * 4;
        const bt_mve_pairs one = { p->x + i * p->x_step, p->z + i * p->x_step, 0, last, 4, 8, 1 };
        bt_mve_fours(l, l->constants + fours * (l->taps + 8), &one, 1);
        for (int32_t o = 0; o < few; o++) {
            y[o] = last[o];
            y[p->z_at + o] = last[4 + o];
        }
    }
}

/* `count` windows, the next of which begins `step` bytes behind, to outputs `y_step` apart. */
BT_INLINE void bt_mve_windows(const bt_mve_layer *l, const int8_t *x, int32_t step, int8_t *y, int32_t y_step,
                              int32_t count)
{
    for (int32_t n; count > 0; count -= n, x += n * step, y += n * y_step) {
        n = count > 1 ? count & ~1 : 1; /* the last may stand alone: it is done twice */
        const int32_t second = n > 1;
        const bt_mve_pairs p = { x,      x + second * step, 2 * step, y, second * y_step, 2 * y_step,
                                 (n + 1) / 2 };
        bt_mve_outputs(l, &p);
    }
}

/* Rows of the input are windows: a linear layer, or a convolution of pixels. They go through scratch in blocks, so that
 * y may be x. scratch: as many rows as fill 512 bytes, at most 64 and at least 8, or 2 of long ones, or all;
 * and 16 bytes behind rows of less than 16 */
BT_SHARED void bt_mve_rows(const bt_mve_layer *l, const int8_t *x, int8_t *y, int32_t count, int8_t *scratch)
{
    const int32_t block = bt_clamp_i32(512 / l->taps & ~1, l->taps > 256 ? 2 : 8, 64);
    for (int32_t n; count > 0; count -= n, x += n * l->taps, y += n * l->out) {
        n = count < block ? count : block;
        bt_mve_copy(scratch, x, n * l->taps);
        bt_mve_windows(l, scratch, l->taps, y, l->out, n);
    }
}

#endif
