/* Depthwise qconv2d for Arm cores with Helium.
 *
 * The rows that a row of outputs needs are kept in scratch, turned so that a channel's window is one run of bytes:
 * [channel][column][row], the row with number r in place r % kernel_h. Up to 16 products are then one instruction. The
 * weights are turned by as many places when they are loaded. Padding is written to scratch ahead. */
#include "../int8_mve.h"
#include "qconv2d.h"

/* One row of the image, or of padding where x is null, to its place in every channel's plane. */
BT_INLINE void bt_depthwise_put(int8_t *to, const int8_t *x, int32_t columns, int32_t column, int32_t channels,
                                int32_t plane, int32_t x_zero)
{
    const uint16x8_t planes = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)plane);
    int16x8_t v = vdupq_n_s16((int16_t)x_zero);
    for (int32_t j = 0; j < columns; j++, to += column) {
        int8_t *at = to;
        if (x)
            __asm__ volatile("dlstp.16 lr, %[n]\n"
                             "1:\n\t"
                             "vldrb.u16 %q[v], [%[x]], #8\n\t"
                             "vstrb.16 %q[v], [%[at], %q[planes]]\n\t"
                             "add %[at], %[at], %[eight]\n\t"
                             "letp lr, 1b"
                             : [at] "+r"(at), [x] "+l"(x), [v] "+w"(v)
                             : [n] "r"(channels), [planes] "w"(planes), [eight] "r"(8 * plane)
                             : "lr", "cc", "memory");
        else
            __asm__ volatile("dlstp.16 lr, %[n]\n"
                             "1:\n\t"
                             "vstrb.16 %q[v], [%[at], %q[planes]]\n\t"
                             "add %[at], %[at], %[eight]\n\t"
                             "letp lr, 1b"
                             : [at] "+r"(at)
                             : [n] "r"(channels), [planes] "w"(planes), [eight] "r"(8 * plane), [v] "w"(v)
                             : "lr", "cc", "memory");
        if (x)
            x += channels - ((channels + 7) & ~7);
    }
}

/* A load at x, which then goes to the next window. */
#define BT_NEXT_3(x) "vldrb.u8 %q[u], [%[" x "]], #3\n\t"
#define BT_NEXT_ANY(x) "vldrb.u8 %q[u], [%[" x "]]\n\tadd %[" x "], %[" x "], %[step]\n\t"

/* 18 or 22 instructions for four outputs. */
#define BT_DEPTHWISE_ROW(next)                                                                                         \
    __asm__ volatile("dls lr, %[count]\n"                                                                              \
                     "1:\n\t" /**/                                                                                     \
                     next("x0") "vmladav.s8 %[a], %q[u], %q[w0]\n\t" /**/                                              \
                     next("x2") "vmladav.s8 %[b], %q[u], %q[w2]\n\t"                                                   \
                     "vmov %q[v][2], %q[v][0], %[a], %[b]\n\t" /**/                                                    \
                     next("x1") "vmladav.s8 %[a], %q[u], %q[w1]\n\t" /**/                                              \
                     next("x3") "vmladav.s8 %[b], %q[u], %q[w3]\n\t"                                                   \
                     "vmov %q[v][3], %q[v][1], %[a], %[b]\n\t"                                                         \
                     "vadd.i32 %q[v], %q[v], %q[bias]\n\t"                                                             \
                     "vrmulh.s32 %q[v], %q[v], %q[m]\n\t"                                                              \
                     "vadd.i32 %q[v], %q[v], %[zero]\n\t"                                                              \
                     "vqmovnb.s32 %q[v], %q[v]\n\t"                                                                    \
                     "vqmovnb.s16 %q[v], %q[v]\n\t"                                                                    \
                     "vstrb.32 %q[v], [%[y]]\n\t"                                                                      \
                     "add %[y], %[y], %[y_step]\n\t"                                                                   \
                     "le lr, 1b"                                                                                       \
                     : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [y] "+l"(y), [u] "=&w"(u),          \
                       [v] "=&w"(v), [a] "=&Te"(a), [b] "=&Te"(b)                                                      \
                     : [count] "r"(p->out_w), [step] "r"(step), [y_step] "r"(p->in), [zero] "r"(p->zero),              \
                       [w0] "w"(w0), [w1] "w"(w1), [w2] "w"(w2), [w3] "w"(w3), [bias] "w"(bias), [m] "w"(multiplier)   \
                     : "lr", "cc", "memory")

/* Four channels of a row of outputs, limited to int8 only. x0: the first channel's first window; order: of weights */
BT_INLINE void bt_depthwise_row(const bt_qconv2d *p, const int8_t *x0, int32_t plane, const int32_t *constants,
                                uint8x16_t order, int32_t taps, int8_t *y)
{
    const mve_pred16_t used = vctp8q((uint32_t)taps);
    const int8_t *w = (const int8_t *)constants;
    const int8x16_t w0 = vldrbq_gather_offset_z_s8(w, order, used);
    const int8x16_t w1 = vldrbq_gather_offset_z_s8(w + taps, order, used);
    const int8x16_t w2 = vldrbq_gather_offset_z_s8(w + 2 * taps, order, used);
    const int8x16_t w3 = vldrbq_gather_offset_z_s8(w + 3 * taps, order, used);
    const int32x4_t bias = vld1q_s32(constants + taps), multiplier = vld1q_s32(constants + taps + 4);
    const int8_t *x1 = x0 + plane, *x2 = x1 + plane, *x3 = x2 + plane;
    const int32_t step = p->stride_w * p->kernel_h;
    int32x4_t u, v;
    int32_t a, b;
    if (step == 3)
        BT_DEPTHWISE_ROW(BT_NEXT_3);
    else
        BT_DEPTHWISE_ROW(BT_NEXT_ANY);
}

BT_SHARED void bt_qconv2d_depthwise_shared_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants,
                                               int8_t *y, int8_t *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int32_t columns = (p->out_w - 1) * p->stride_w + p->kernel_w;
    const int32_t plane = columns * p->kernel_h;
    const int32_t used = bt_clamp_i32(columns - p->pad_left, 0, p->in_w); /* columns of the image */
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
            /* The window's first row lies in `place`. */
            uint8_t order[16] = { 0 };
            for (int32_t i = 0, k = 0; i < p->kernel_w; i++) {
                for (int32_t j = 0; j < p->kernel_h; j++)
                    order[k++] = (uint8_t)(i * p->kernel_h + (j >= place ? j - place : j - place + p->kernel_h));
            }
            const int32_t *k = constants;
            for (int32_t block = 0; block < p->in; block += 4, k += taps + 8) {
                const int32_t c = block + 4 <= p->in ? block : p->in - 4; /* the last four may overlap those before */
                bt_depthwise_row(p, scratch + c * plane, plane, k, vld1q_u8(order), taps, y + c);
            }
            bt_mve_limit_i8(y, p->out_w * p->in, p->lo, p->hi);
            y += p->out_w * p->in;
        }
    }
}

/* scratch: kernel_h rows of the image with its padding, and 16 bytes behind them */
BT_KERNEL void bt_qconv2d_depthwise_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                        void *scratch)
{
    bt_qconv2d_depthwise_shared_mve(p, x, constants, y, (int8_t *)scratch);
}
