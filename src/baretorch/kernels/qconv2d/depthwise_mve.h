/* Depthwise qconv2d for Arm cores with Helium.
 *
 * The rows that a row of outputs needs are kept in scratch, turned so that a channel's window is one run of bytes:
 * [channel][column][row], the row with number r in place r % kernel_h. Up to 16 products are then one instruction. The
 * weights are turned by as many places when they are loaded. Padding is written to scratch ahead. */
#ifndef BT_QCONV2D_DEPTHWISE_MVE_H
#define BT_QCONV2D_DEPTHWISE_MVE_H

#include "../int8_mve.h"
#include "qconv2d.h"

/* One row of the image, or of padding where x is null, to its place in every channel's plane. */
BT_INLINE void bt_depthwise_put(int8_t *to, const int8_t *x, int32_t columns, int32_t column, int32_t channels,
                                int32_t plane, int32_t x_zero)
{
    const uint16x8_t planes = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)plane);
    const int32_t behind = channels - ((channels + 7) & ~7), eight = 8 * plane;
    const int8_t *const end = to + columns * column;
    int16x8_t v = vdupq_n_s16((int16_t)x_zero);
    if (!x) {
        for (; to != end; to += column) {
            int8_t *at = to;
            __asm__ volatile("dlstp.16 lr, %[n]\n"
                             "1:\n\t"
                             "vstrb.16 %q[v], [%[at], %q[planes]]\n\t"
                             "add %[at], %[at], %[eight]\n\t"
                             "letp lr, 1b"
                             : [at] "+&r"(at)
                             : [n] "r"(channels), [planes] "w"(planes), [eight] "r"(eight), [v] "w"(v)
                             : "lr", "cc", "memory");
        }
        return;
    }
    for (; to != end; to += column, x += behind) {
        int8_t *at = to;
        __asm__ volatile("dlstp.16 lr, %[n]\n"
                         "1:\n\t"
                         "vldrb.u16 %q[v], [%[x]], #8\n\t"
                         "vstrb.16 %q[v], [%[at], %q[planes]]\n\t"
                         "add %[at], %[at], %[eight]\n\t"
                         "letp lr, 1b"
                         : [at] "+&r"(at), [x] "+&l"(x), [v] "+&w"(v)
                         : [n] "r"(channels), [planes] "w"(planes), [eight] "r"(eight)
                         : "lr", "cc", "memory");
    }
}

/* A load at x, which then goes to the next window. */
#define BT_NEXT_3(x) "vldrb.u8 q6, [%[" x "]], #3\n\t"
#define BT_NEXT_ANY(x) "vldrb.u8 q6, [%[" x "]]\n\tadd %[" x "], %[" x "], %[step]\n\t"

/* 18 or 22 instructions for four outputs, and 25 for four channels. */
#define BT_DEPTHWISE_FOURS(next)                                                                                       \
    __asm__ volatile("vctp.8 %[a]\n"                                                                                   \
                     "0:\n\t"                                                                                          \
                     "vldrw.u32 q6, [%[s], #24]\n\t"                                                                   \
                     "ldr %[a], [%[s], #16]\n\t"                                                                       \
                     "vpstttt\n\t"                                                                                     \
                     "vldrbt.u8 q0, [%[k], q6]\n\t"                                                                    \
                     "vaddt.i8 q6, q6, %[a]\n\t"                                                                       \
                     "vldrbt.u8 q1, [%[k], q6]\n\t"                                                                    \
                     "vaddt.i8 q6, q6, %[a]\n\t"                                                                       \
                     "vpsttt\n\t"                                                                                      \
                     "vldrbt.u8 q2, [%[k], q6]\n\t"                                                                    \
                     "vaddt.i8 q6, q6, %[a]\n\t"                                                                       \
                     "vldrbt.u8 q3, [%[k], q6]\n\t"                                                                    \
                     "add %[k], %[k], %[a], lsl #2\n\t"                                                                \
                     "vldrw.u32 q4, [%[k]], #16\n\t"                                                                   \
                     "vldrw.u32 q5, [%[k]], #16\n\t"                                                                   \
                     "ldrd %[a], %[b], [%[s]]\n\t"                                                                     \
                     "add %[x0], %[x3], %[b]\n\t"                                                                      \
                     "add %[x1], %[x0], %[a]\n\t"                                                                      \
                     "add %[x2], %[x1], %[a]\n\t"                                                                      \
                     "add %[x3], %[x2], %[a]\n\t"                                                                      \
                     "ldrd %[a], %[b], [%[s], #8]\n\t"                                                                 \
                     "dls lr, %[a]\n\t"                                                                                \
                     "add %[y], %[y], %[b]\n"                                                                          \
                     "1:\n\t" /**/                                                                                     \
                     next("x0") "vmladav.s8 %[a], q6, q0\n\t" /**/                                                     \
                     next("x2") "vmladav.s8 %[b], q6, q2\n\t"                                                          \
                     "vmov q7[2], q7[0], %[a], %[b]\n\t" /**/                                                          \
                     next("x1") "vmladav.s8 %[a], q6, q1\n\t" /**/                                                     \
                     next("x3") "vmladav.s8 %[b], q6, q3\n\t"                                                          \
                     "vmov q7[3], q7[1], %[a], %[b]\n\t"                                                               \
                     "vadd.i32 q7, q7, q4\n\t"                                                                         \
                     "vrmulh.s32 q7, q7, q5\n\t"                                                                       \
                     "vadd.i32 q7, q7, %[zero]\n\t"                                                                    \
                     "vqmovnb.s32 q7, q7\n\t"                                                                          \
                     "vqmovnb.s16 q7, q7\n\t"                                                                          \
                     "vstrb.32 q7, [%[y]]\n\t"                                                                         \
                     "add %[y], %[y], %[y_step]\n\t"                                                                   \
                     "le lr, 1b\n\t"                                                                                   \
                     "ldr %[a], [%[s], #20]\n\t"                                                                       \
                     "cmp %[k], %[a]\n\t"                                                                              \
                     "bne 0b"                                                                                          \
                     : [k] "+&r"(k), [x0] "=&r"(x0), [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "+&r"(x3), [y] "+&l"(y),     \
                       [a] "+&Te"(a), [b] "=&Te"(b)                                                                    \
                     : [s] "r"(&s), [step] "r"(step), [y_step] "r"(p->in), [zero] "r"(p->zero)                         \
                     : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")

/* `fours` times four channels of a row of outputs, limited to int8 only. x: the first channel's first window; order: of
 * weights */
BT_SHARED void bt_depthwise_fours(const bt_qconv2d *p, const int8_t *x, int32_t plane, const int32_t *k,
                                  uint8x16_t order, int8_t *y, int32_t fours)
{
    const int32_t step = p->stride_w * p->kernel_h, taps = p->kernel_h * p->kernel_w;
    const struct {
        int32_t plane, x_back; /* from the end of the last channel's windows, or outputs, to the next four's */
        int32_t count, y_back;
        int32_t taps;
        const int32_t *end;
        uint8x16_t order;
    } s = { plane, plane - p->out_w * step, p->out_w, 4 - p->out_w * p->in, taps, k + fours * (taps + 8), order };
    const int8_t *x0, *x1, *x2, *x3 = x - s.x_back;
    int32_t a = taps, b;
    y -= s.y_back;
    if (step == 3)
        BT_DEPTHWISE_FOURS(BT_NEXT_3);
    else
        BT_DEPTHWISE_FOURS(BT_NEXT_ANY);
}

BT_SHARED void bt_qconv2d_depthwise_shared_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants,
                                               int8_t *y, int8_t *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int32_t columns = (p->out_w - 1) * p->stride_w + p->kernel_w;
    const int32_t plane = columns * p->kernel_h;
    const int32_t used = bt_clamp_i32(columns - p->pad_left, 0, p->in_w); /* columns of the image */
    const int32_t fours = p->in / 4, few = p->in % 4;
    uint8_t row_of[16] = { 0 };
    for (int32_t i = 0, j = 0; i < taps; i++, j = j + 1 < p->kernel_h ? j + 1 : 0)
        row_of[i] = (uint8_t)j;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int32_t row = -p->pad_top; /* the next that goes to scratch, */
        int32_t place = 0;         /* here */
        bt_mve_fill(scratch, p->x_zero, plane * p->in);
        for (int32_t h = 0; h < p->out_h; h++) {
            for (; row < h * p->stride_h - p->pad_top + p->kernel_h; row++) {
                const int8_t *const from = row >= 0 && row < p->in_h ? x + row * p->in_w * p->in : 0;
                bt_depthwise_put(scratch + p->pad_left * p->kernel_h + place, from, used, p->kernel_h, p->in, plane,
                                 p->x_zero);
                place = place + 1 < p->kernel_h ? place + 1 : 0;
            }
            /* The window's first row is in `place`: weights of the rows before it are those of the last rows. */
            const uint8x16_t rows = vld1q_u8(row_of);
            const uint8x16_t turned = vsubq_n_u8(vidupq_n_u8(0, 1), (uint8_t)place);
            const mve_pred16_t before = vcmphiq_u8(vdupq_n_u8((uint8_t)place), rows);
            const uint8x16_t order = vaddq_m_n_u8(turned, turned, (uint8_t)p->kernel_h, before);
            bt_depthwise_fours(p, scratch, plane, constants, order, y, fours);
            if (few) /* the last four channels overlap those before */
                bt_depthwise_fours(p, scratch + (p->in - 4) * plane, plane, constants + fours * (taps + 8), order,
                                   y + p->in - 4, 1);
            bt_mve_limit_i8(y, p->out_w * p->in, p->lo, p->hi);
            y += p->out_w * p->in;
        }
    }
}

#endif
