/* The shared parts of int8 kernels for Arm cores with Helium (the M-profile vector extension: Cortex-M55, M85).
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
                     : [to] "+&r"(to), [from] "+&r"(from), [v] "=&w"(v)
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
                     : [to] "+&r"(to)
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
                     : [y] "+&r"(y), [v] "=&w"(v)
                     : [n] "r"(n), [lo] "w"(vdupq_n_s8((int8_t)lo)), [hi] "w"(vdupq_n_s8((int8_t)hi))
                     : "lr", "cc", "memory");
}

/* `step`: how the weights' pointer advances after a load from `at` */
#define BT_MVE_CHANNEL(mla, at, step, first, second)                                                                   \
    "vldrb.u8 q2, " at "\n\t" step mla " " first ", q0, q2\n\t" mla " " second ", q1, q2\n\t"
#define BT_MVE_CHANNELS(mla, at, step)                                                                                 \
    BT_MVE_CHANNEL(mla, at, step, "r0", "r8")                                                                          \
    BT_MVE_CHANNEL(mla, at, step, "r2", "r10")                                                                         \
    BT_MVE_CHANNEL(mla, at, step, "r4", "r12") BT_MVE_CHANNEL(mla, at, step, "r6", "lr")
#define BT_MVE_TWO BT_MVE_SIXTEEN("vmladava.s8") BT_MVE_SIXTEEN("vmladava.s8")
#define BT_MVE_SIXTEEN(mla)                                                                                            \
    "vldrb.u8 q0, [%[x]], #16\n\t"                                                                                     \
    "vldrb.u8 q1, [%[z]], #16\n\t" BT_MVE_CHANNELS(mla, "[%[k]], #16", "")

/* Sums of two windows, in q0 and q1, to bytes: those of both in turn, in q0's halfwords. */
#define BT_MVE_NARROW(bias, m, zero)                                                                                   \
    "vadd.i32 q0, q0, " bias "\n\t"                                                                                    \
    "vadd.i32 q1, q1, " bias "\n\t"                                                                                    \
    "vrmulh.s32 q0, q0, " m "\n\t"                                                                                     \
    "vrmulh.s32 q1, q1, " m "\n\t"                                                                                     \
    "vqmovnb.s32 q0, q0\n\t"                                                                                           \
    "vqmovnt.s32 q0, q1\n\t"                                                                                           \
    "vqadd.s16 q0, q0, " zero "\n\t"                                                                                   \
    "vqmovnb.s16 q0, q0\n\t"

#define BT_MVE_FAR 65532 /* the largest z_at that a scattering store reaches */

/* Windows, two by two, and where their outputs go. A window may be done twice, to the same place. */
typedef struct {
    const int8_t *x, *z;
    int32_t x_step; /* from both to the next two */
    int8_t *y;
    int32_t z_at; /* distance from the first's outputs to the second's */
    int32_t y_step;
    int32_t pairs;
} bt_mve_pairs;

/* The places of the eight outputs of BT_MVE_NARROW. */
BT_INLINE uint16x8_t bt_mve_places(const bt_mve_pairs *p)
{
    const uint16x8_t i = vidupq_n_u16(0, 1);
    return vmlaq_n_u16(vshrq_n_u16(i, 1), vandq_u16(i, vdupq_n_u16(1)), (uint16_t)p->z_at);
}

/* Four channels of windows of at most 16 bytes, whose weights stay in registers: 28 instructions for eight outputs, or
 * 26 where windows of 8 or 16 bytes follow each other. 16 bytes are read of each window. */
#define BT_MVE_SHORT(first, second)                                                                                    \
    __asm__ volatile("dls lr, %[a]\n"                                                                                  \
                     "1:\n\t" first second /**/                                                                        \
                     "vmladav.s8 %[a], q0, %q[w0]\n\t"                                                                 \
                     "vmladav.s8 %[b], q0, %q[w1]\n\t"                                                                 \
                     "vmladav.s8 %[c], q0, %q[w2]\n\t"                                                                 \
                     "vmladav.s8 %[d], q0, %q[w3]\n\t"                                                                 \
                     "vmov q0[2], q0[0], %[a], %[c]\n\t"                                                               \
                     "vmov q0[3], q0[1], %[b], %[d]\n\t"                                                               \
                     "vmladav.s8 %[a], q1, %q[w0]\n\t"                                                                 \
                     "vmladav.s8 %[b], q1, %q[w1]\n\t"                                                                 \
                     "vmladav.s8 %[c], q1, %q[w2]\n\t"                                                                 \
                     "vmladav.s8 %[d], q1, %q[w3]\n\t"                                                                 \
                     "vmov q1[2], q1[0], %[a], %[c]\n\t"                                                               \
                     "vmov q1[3], q1[1], %[b], %[d]\n\t" /**/                                                          \
                     BT_MVE_NARROW("%q[bias]", "%q[m]", "%[zero]") "vldrh.u16 q1, [%[at]]\n\t"                         \
                     "vstrb.16 q0, [%[y], q1]\n\t"                                                                     \
                     "add %[y], %[y], %[y_step]\n\t"                                                                   \
                     "le lr, 1b"                                                                                       \
                     : [x] "+&r"(x), [z] "+&r"(z), [y] "+&r"(y), [a] "+&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c),          \
                       [d] "=&Te"(d)                                                                                   \
                     : [x_step] "r"(p->x_step), [y_step] "r"(p->y_step), [zero] "r"(l->zero), [at] "r"(at),            \
                       [w0] "w"(w0), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3), [bias] "w"(vld1q_s32(k)),               \
                       [m] "w"(vld1q_s32(k + 4 + l->taps))                                                             \
                     : "lr", "q0", "q1", "cc", "memory")

BT_INLINE void bt_mve_short(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int8_t *y,
                            const uint16_t *at)
{
    const int8_t *x = p->x, *z = p->z;
    const mve_pred16_t used = vctp8q((uint32_t)l->taps);
    const int8_t *const weights = (const int8_t *)(k + 4);
    const int8x16_t w0 = vldrbq_z_s8(weights, used), w1 = vldrbq_z_s8(weights + l->taps, used);
    const int8x16_t w2 = vldrbq_z_s8(weights + 2 * l->taps, used), w3 = vldrbq_z_s8(weights + 3 * l->taps, used);
    const int32_t apart = z - x;
    int32_t a = p->pairs, b, c, d;
    if (apart == 16 && p->x_step == 32)
        BT_MVE_SHORT("vldrb.u8 q0, [%[x]], #16\n\t", "vldrb.u8 q1, [%[x]], #16\n\t");
    else if (apart == 8 && p->x_step == 16)
        BT_MVE_SHORT("vldrb.u8 q0, [%[x]], #8\n\t", "vldrb.u8 q1, [%[x]], #8\n\t");
    else
        BT_MVE_SHORT("vldrb.u8 q0, [%[x]]\n\tadd %[x], %[x], %[x_step]\n\t",
                     "vldrb.u8 q1, [%[z]]\n\tadd %[z], %[z], %[x_step]\n\t");
}

#define BT_MVE_CHAIN 8         /* vectors in a pass over a chain of code, */
#define BT_MVE_VECTOR (14 * 4) /* and bytes of code that one takes */
#define BT_MVE_REST                                                                                                    \
    "ldr %[n], [%[s], #28]\n\t"                                                                                        \
    "vpstt\n\t"                                                                                                        \
    "vldrbt.u8 q0, [%[x]]\n\t"                                                                                         \
    "vldrbt.u8 q1, [%[z]]\n\t" BT_MVE_CHANNELS("vmladava.s8", "[%[k]]", "add %[k], %[k], %[n]\n\t")

/* s + `at` had how far into the chain at 3 the first pass enters; now it has the address. */
#define BT_MVE_ENTRY(at)                                                                                               \
    "adr.w %[n], 3f\n\t"                                                                                               \
    "orr %[n], %[n], #1\n\t"                                                                                           \
    "ldr r0, [%[s], #" at "]\n\t"                                                                                      \
    "add %[n], %[n], r0\n\t"                                                                                           \
    "str %[n], [%[s], #" at "]\n"
#define BT_MVE_TOGETHER                                                                                                \
    "vmov q0[2], q0[0], r0, r4\n\t"                                                                                    \
    "vmov q0[3], q0[1], r2, r6\n\t"                                                                                    \
    "vmov q1[2], q1[0], r8, r12\n\t"                                                                                   \
    "vmov q1[3], q1[1], r10, lr\n\t"
#define BT_MVE_SUMS "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr"

/* `fours` times four channels of longer windows: 14 instructions for 128 products, 2 for each pass over the chain but
 * the first, 25 for eight outputs, and 14 for four channels. `passes` is odd where no taps are left after vectors. */
BT_INLINE void bt_mve_long(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours)
{
    const int32_t more = l->taps / 16 - 1, rest = l->taps % 16; /* vectors after the first, and taps after them */
    const int32_t passes = more ? (more + BT_MVE_CHAIN - 1) / BT_MVE_CHAIN : 1;
    struct {
        int32_t back, y_step; /* from the end of a window to the next; from outputs to the next */
        int8_t *end, *y;
        const int32_t *weights;
        int32_t passes, entry, rest;
        const int8_t *x, *z;
        int32_t bytes; /* of four channels' weights */
        int8_t *first;
        int32_t fours; /* to go */
    } s = { p->x_step - 16 * (more + 1),
            p->y_step,
            p->y + p->pairs * p->y_step,
            p->y,
            k,
            2 * passes - (rest == 0),
            (BT_MVE_CHAIN * passes - more) * BT_MVE_VECTOR,
            rest,
            p->x,
            p->z,
            4 * l->taps,
            p->y,
            fours };
    const int8_t *x, *z;
    int32_t n;
    __asm__ volatile(BT_MVE_ENTRY("24") "ldr %[n], [%[s], #28]\n\t"
                     "vctp.8 %[n]\n"
                     "0:\n\t"
                     "vldrw.u32 q3, [%[k]], #16\n\t"
                     "str %[k], [%[s], #16]\n\t"
                     "ldr %[n], [%[s], #40]\n\t"
                     "add %[n], %[n], %[k]\n\t"
                     "vldrw.u32 q4, [%[n]]\n\t"
                     "ldrd %[x], %[z], [%[s], #32]\n"
                     "1:\n\t"
                     "ldrd %[k], %[n], [%[s], #16]\n\t" /**/
                     BT_MVE_SIXTEEN("vmladav.s8") "ldr pc, [%[s], #24]\n\t"
                     ".p2align 2\n" /* or ADR is 2 bytes off where functions are not aligned */
                     "3:\n\t" /**/
                     BT_MVE_TWO BT_MVE_TWO BT_MVE_TWO BT_MVE_TWO "subs %[n], %[n], #2\n\t"
                     "bgt 3b\n\t"
                     "bmi 5f\n\t" /**/
                     BT_MVE_REST "5:\n\t" /**/
                     BT_MVE_TOGETHER "ldm %[s], {r0, r2, r4, r6}\n\t" /**/
                     BT_MVE_NARROW("q3", "q4", "%q[zero]") "vstrb.16 q0, [r6, %q[at]]\n\t"
                     "add r6, r6, r2\n\t"
                     "str r6, [%[s], #12]\n\t"
                     "add %[x], %[x], r0\n\t"
                     "add %[z], %[z], r0\n\t"
                     "cmp r6, r4\n\t"
                     "bne 1b\n\t"
                     "ldrd r0, r2, [%[s], #44]\n\t" /* the next four channels, after the multipliers */
                     "add %[k], %[k], #16\n\t"
                     "add r0, r0, #4\n\t"
                     "add r4, r4, #4\n\t"
                     "strd r4, r0, [%[s], #8]\n\t"
                     "subs r2, r2, #1\n\t"
                     "strd r0, r2, [%[s], #44]\n\t"
                     "bne 0b"
                     : [k] "+&r"(k), [x] "=&r"(x), [z] "=&r"(z), [n] "=&r"(n)
                     : [s] "r"(&s), [zero] "w"(vdupq_n_s16((int16_t)l->zero)), [at] "w"(bt_mve_places(p))
                     : BT_MVE_SUMS, "q0", "q1", "q2", "q3", "q4", "cc", "memory");
}

/* The same for 2 to 8 vectors without taps after them, of which those of two windows follow each other in turn, and so
 * do the pairs: 14 instructions for 128 products, 19 for eight outputs, and 13 for four channels. */
BT_SHARED void bt_mve_in_turn(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours)
{
    struct {
        int32_t y_step;
        int8_t *end;
        const int32_t *weights;
        int32_t entry;
        const int8_t *x;
        int32_t bytes; /* of four channels' weights */
        int8_t *y;
        int32_t fours; /* to go */
    } s = { p->y_step,    p->y + p->pairs * p->y_step, k,    (BT_MVE_CHAIN - l->taps / 16) * BT_MVE_VECTOR, p->x,
            4 * l->taps, p->y,                        fours };
    const int8_t *x;
    int8_t *y = p->y;
    int32_t n;
#define BT_MVE_NEXT                                                                                                    \
    "vldrb.u8 q0, [%[x]], #16\n\t"                                                                                     \
    "vldrb.u8 q1, [%[x]], #16\n\t" BT_MVE_CHANNELS("vmladava.s8", "[%[k]], #16", "")
    __asm__ volatile(BT_MVE_ENTRY("12") "0:\n\t"
                     "vldrw.u32 q3, [%[k]], #16\n\t"
                     "str %[k], [%[s], #8]\n\t"
                     "ldrd %[x], %[n], [%[s], #16]\n\t"
                     "add %[n], %[n], %[k]\n\t"
                     "vldrw.u32 q4, [%[n]]\n"
                     "1:\n\t"
                     "ldr %[k], [%[s], #8]\n\t"
                     "vldrb.u8 q0, [%[x]], #16\n\t"
                     "vldrb.u8 q1, [%[x]], #16\n\t" /**/
                     BT_MVE_CHANNELS("vmladav.s8", "[%[k]], #16", "") "ldr pc, [%[s], #12]\n\t"
                     ".p2align 2\n"
                     "3:\n\t" /**/
                     BT_MVE_NEXT BT_MVE_NEXT BT_MVE_NEXT BT_MVE_NEXT BT_MVE_NEXT BT_MVE_NEXT BT_MVE_NEXT /**/
                     BT_MVE_TOGETHER "ldrd r0, r2, [%[s]]\n\t" /**/
                     BT_MVE_NARROW("q3", "q4", "%q[zero]") "vstrb.16 q0, [%[y], %q[at]]\n\t"
                     "add %[y], %[y], r0\n\t"
                     "cmp %[y], r2\n\t"
                     "bne 1b\n\t"
                     "ldrd %[y], %[n], [%[s], #24]\n\t" /* the next four channels, after the multipliers */
                     "add %[k], %[k], #16\n\t"
                     "add r2, r2, #4\n\t"
                     "str r2, [%[s], #4]\n\t"
                     "add %[y], %[y], #4\n\t"
                     "subs %[n], %[n], #1\n\t"
                     "strd %[y], %[n], [%[s], #24]\n\t"
                     "bne 0b"
                     : [k] "+&r"(k), [x] "=&r"(x), [y] "+&r"(y), [n] "=&r"(n)
                     : [s] "r"(&s), [zero] "w"(vdupq_n_s16((int16_t)l->zero)), [at] "w"(bt_mve_places(p))
                     : BT_MVE_SUMS, "q0", "q1", "q2", "q3", "q4", "cc", "memory");
#undef BT_MVE_NEXT
}

/* The outputs of `fours` times four channels. */
BT_SHARED void bt_mve_fours(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours)
{
    if (l->taps > 16)
        bt_mve_long(l, k, p, fours);
    else {
        uint16_t at[8];
        vst1q_u16(at, bt_mve_places(p));
        for (int32_t i = 0; i < fours; i++, k += l->taps + 8)
            bt_mve_short(l, k, p, p->y + 4 * i, at);
    }
}

typedef void bt_mve_work(const bt_mve_layer *l, const int32_t *k, const bt_mve_pairs *p, int32_t fours);

/* All channels, limited to int8 only. */
BT_INLINE void bt_mve_channels(const bt_mve_layer *l, const bt_mve_pairs *p, bt_mve_work *work)
{
    const int32_t fours = l->out / 4, few = l->out % 4;
    if (fours)
        work(l, l->constants, p, fours);
    for (int32_t i = 0; few && i < p->pairs; i++) { /* channels that fill no four */
        int8_t last[8], *const y = p->y + i * p->y_step + fours * 4;
        const bt_mve_pairs one = { p->x + i * p->x_step, p->z + i * p->x_step, 0, last, 4, 8, 1 };
        work(l, l->constants + fours * (l->taps + 8), &one, 1);
        for (int32_t o = 0; o < few; o++) {
            y[o] = last[o];
            y[p->z_at + o] = last[4 + o];
        }
    }
}

BT_SHARED void bt_mve_outputs(const bt_mve_layer *l, const bt_mve_pairs *p)
{
    bt_mve_channels(l, p, bt_mve_fours);
}

BT_SHARED void bt_mve_outputs_in_turn(const bt_mve_layer *l, const bt_mve_pairs *p)
{
    bt_mve_channels(l, p, bt_mve_in_turn);
}

/* `count` windows, the next of which begins `step` bytes after, to outputs `y_step` apart. */
BT_INLINE void bt_mve_windows(const bt_mve_layer *l, const int8_t *x, int32_t step, int8_t *y, int32_t y_step,
                              int32_t count)
{
    for (int32_t n; count > 0; count -= n, x += n * step, y += n * y_step) {
        n = count > 1 && y_step <= BT_MVE_FAR ? count & ~1 : 1; /* the last may be alone: it is computed twice */
        const int32_t second = n > 1;
        const bt_mve_pairs p = { x,      x + second * step, 2 * step, y, second * y_step, 2 * y_step,
                                 (n + 1) / 2 };
        bt_mve_outputs(l, &p);
    }
}

/* n vectors of x and of z in turn */
BT_INLINE void bt_mve_copy_in_turn(int8_t *to, const int8_t *x, const int8_t *z, int32_t n)
{
    int8x16_t u, v;
    __asm__ volatile("dls lr, %[n]\n"
                     "1:\n\t"
                     "vldrb.u8 %q[u], [%[x]], #16\n\t"
                     "vldrb.u8 %q[v], [%[z]], #16\n\t"
                     "vstrb.8 %q[u], [%[to]], #16\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "le lr, 1b"
                     : [to] "+&r"(to), [x] "+&r"(x), [z] "+&r"(z), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(n)
                     : "lr", "cc", "memory");
}

/* Rows of the input are windows: a linear layer, or a convolution of pixels. They go through scratch in blocks, so that
 * y may be x. scratch: as many rows as fill 512 bytes, at most 64 and at least 8, or 2 of long ones, or all, and one
 * more of an odd number of rows that go in turn; and 16 bytes after rows of less than 16 */
BT_SHARED void bt_mve_rows(const bt_mve_layer *l, const int8_t *x, int8_t *y, int32_t count, int8_t *scratch)
{
    const int32_t taps = l->taps, block = bt_clamp_i32(512 / taps & ~1, taps > 256 ? 2 : 8, 64);
    const int in_turn = taps % 16 == 0 && taps > 16 && taps <= 16 * BT_MVE_CHAIN && l->out <= BT_MVE_FAR;
    for (int32_t n; count > 0; count -= n, x += n * taps, y += n * l->out) {
        n = count < block ? count : block;
        if (!in_turn) {
            bt_mve_copy(scratch, x, n * taps);
            bt_mve_windows(l, scratch, taps, y, l->out, n);
            continue;
        }
        n = n > 1 ? n & ~1 : 1; /* the last may be alone: it is computed twice */
        const int32_t second = n > 1;
        for (int32_t i = 0; i < n; i += 2)
            bt_mve_copy_in_turn(scratch + i * taps, x + i * taps, x + (i + second) * taps, taps / 16);
        const bt_mve_pairs p = { scratch, scratch, 2 * taps, y, second * l->out, 2 * l->out, (n + 1) / 2 };
        bt_mve_outputs_in_turn(l, &p);
    }
}

#endif
