/* qconv2d with groups == in == out for CV32E40P.
 *
 * What a row of outputs reads is brought to scratch with a channel's rows of a column as the bytes of a word, so that a
 * window is kernel_w words, and each takes one instruction to multiply: 3 for the 9 products of a 3x3 window. Four rows
 * are enough for two rows of outputs if those have three taps each: weights for the second begin with the second byte. */
#include "../xcv.h"
#include "qconv2d.h"

#define BT_XCV_SHUFFLE(rd, a, which) ".insn r 0x7b, 1, 0x60, " rd ", " a ", " which "\n\t"  /* cv.shuffle.b */
#define BT_XCV_SHUFFLE2(rd, a, which) ".insn r 0x7b, 1, 0x70, " rd ", " a ", " which "\n\t" /* cv.shuffle2.b */
#define BT_XCV_PACK(rd, a, b) ".insn r 0x7b, 0, 0x78, " rd ", " a ", " b "\n\t"             /* cv.pack */
#define BT_XCV_PACK_H(rd, a, b) ".insn r 0x7b, 0, 0x79, " rd ", " a ", " b "\n\t"           /* cv.pack.h */

enum { BT_XCV_LOW = 0x05010400, BT_XCV_HIGH = 0x07030602 };

/* Words of four channels from four rows become words of four rows from four channels, `step` words apart; all channels,
 * with 18 instructions for each four. */
BT_INLINE void bt_qconv2d_four_rows_xcv(int32_t *to, int32_t step, const int8_t *r0, const int8_t *r1, const int8_t *r2,
                                        const int8_t *r3, int32_t fours)
{
    int32_t a, b, c, d, e;
    __asm__ volatile(BT_XCV_LOOP("%[n]", "18")
                     BT_XCV_LW("%[a]", "%[r0]") BT_XCV_LW("%[b]", "%[r1]") BT_XCV_LW("%[c]", "%[r2]")
                     BT_XCV_LW("%[d]", "%[r3]") "mv %[e], %[a]\n\t"
                     BT_XCV_SHUFFLE2("%[e]", "%[b]", "%[low]") BT_XCV_SHUFFLE2("%[a]", "%[b]", "%[high]")
                     "mv %[b], %[c]\n\t"
                     BT_XCV_SHUFFLE2("%[b]", "%[d]", "%[low]") BT_XCV_SHUFFLE2("%[c]", "%[d]", "%[high]")
                     BT_XCV_PACK("%[d]", "%[b]", "%[e]") BT_XCV_PACK_H("%[e]", "%[b]", "%[e]")
                     BT_XCV_SW_BY("%[d]", "%[to]", "%[step]") BT_XCV_SW_BY("%[e]", "%[to]", "%[step]")
                     BT_XCV_PACK("%[d]", "%[c]", "%[a]") BT_XCV_PACK_H("%[a]", "%[c]", "%[a]")
                     BT_XCV_SW_BY("%[d]", "%[to]", "%[step]") BT_XCV_SW_BY("%[a]", "%[to]", "%[step]")
                     BT_XCV_LOOP_END
                     : [to] "+&r"(to), [r0] "+&r"(r0), [r1] "+&r"(r1), [r2] "+&r"(r2), [r3] "+&r"(r3), [a] "=&r"(a),
                       [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e)
                     : [n] "r"(fours), [step] "r"(4 * step), [low] "r"(BT_XCV_LOW), [high] "r"(BT_XCV_HIGH)
                     : "memory");
}

/* A column outside of the image. */
BT_INLINE void bt_qconv2d_outside_xcv(int32_t *to, int32_t step, int32_t outside, int32_t fours)
{
    __asm__ volatile(BT_XCV_LOOP("%[n]", "4")
                     BT_XCV_SW_BY("%[v]", "%[to]", "%[step]") BT_XCV_SW_BY("%[v]", "%[to]", "%[step]")
                     BT_XCV_SW_BY("%[v]", "%[to]", "%[step]") BT_XCV_SW_BY("%[v]", "%[to]", "%[step]")
                     BT_XCV_LOOP_END
                     : [to] "+&r"(to)
                     : [n] "r"(fours), [step] "r"(4 * step), [v] "r"(outside)
                     : "memory");
}

/* The columns that `rows` rows of taps from `top` on read, to each channel's words. `blank` are in bytes outside. */
BT_INLINE void bt_qconv2d_columns_xcv(const bt_qconv2d *p, int32_t pitch, const int8_t *x, int32_t top, int32_t rows,
                                      int32_t columns, int32_t *to, const int8_t *blank)
{
    const int32_t outside = (int32_t)(0x01010101u * (uint8_t)p->x_zero), fours = p->in >> 2;
    const int32_t left = p->pad_left < columns ? p->pad_left : columns;
    const int32_t end = columns < p->pad_left + p->in_w ? columns : p->pad_left + p->in_w;
    const int8_t *row[4];
    int32_t step[4], w = 0;
    for (int32_t k = 0; k < 4; k++) { /* where a row ends the weights have zeros */
        const int32_t h = top + k * p->dilation_h;
        const int inside = k < rows && h >= 0 && h < p->in_h;
        row[k] = inside ? x + h * p->in_w * pitch : blank;
        step[k] = inside ? pitch : 0;
    }
    for (; w < left; w++)
        bt_qconv2d_outside_xcv(to + w, columns, outside, fours);
    for (; w < end; w++) {
        bt_qconv2d_four_rows_xcv(to + w, columns, row[0], row[1], row[2], row[3], fours);
        row[0] += step[0], row[1] += step[1], row[2] += step[2], row[3] += step[3];
    }
    for (; w < columns; w++)
        bt_qconv2d_outside_xcv(to + w, columns, outside, fours);
}

/* A channel's row of `n` outputs of windows with three columns that follow each other: 16 cycles each, 12 if narrow. */
#define BT_QCONV2D_THREE_XCV(multiply)                                                                                 \
    __asm__ volatile(BT_XCV_LOOP("%[n]", "12")                                                                         \
                     "lw %[b], 4(%[x])\n\tlw %[c], 8(%[x])\n\t"                                                        \
                     BT_XCV_LW_BY("%[a]", "%[x]", "%[step]") "mv %[sum], %[bias]\n\t"                                  \
                     BT_XCV_DOT("%[sum]", "%[b]", "%[w1]") BT_XCV_DOT("%[sum]", "%[c]", "%[w2]")                       \
                     BT_XCV_DOT("%[sum]", "%[a]", "%[w0]") multiply " %[sum], %[sum], %[factor]\n\t"                   \
                     BT_XCV_ROUND("%[sum]", "%[offset]", "%[right]") BT_XCV_MAX("%[sum]", "%[sum]", "%[lo]")           \
                     BT_XCV_MIN("%[sum]", "%[sum]", "%[hi]") BT_XCV_SB_BY("%[sum]", "%[y]", "%[pitch]")                \
                     BT_XCV_LOOP_END                                                                                   \
                     : [x] "+&r"(x), [y] "+&r"(y), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [sum] "=&r"(sum)          \
                     : [n] "r"(n), [step] "r"(step), [bias] "r"(bias), [w0] "r"(taps[0]), [w1] "r"(taps[1]),           \
                       [w2] "r"(taps[2]), [factor] "r"(factor), [offset] "r"(r->offset), [right] "r"(r->right),        \
                       [lo] "r"(r->lo), [hi] "r"(r->hi), [pitch] "r"(pitch)                                            \
                     : "memory")

BT_INLINE void bt_qconv2d_three_xcv(const bt_xcv_rule *r, int narrow, const int32_t *x, int32_t step,
                                    const int32_t *taps, int32_t bias, int32_t factor, int8_t *y, int32_t pitch,
                                    int32_t n)
{
    int32_t a, b, c, sum;
    if (narrow)
        BT_QCONV2D_THREE_XCV("mul");
    else
        BT_QCONV2D_THREE_XCV("mulhsu");
}

/* Two rows of outputs, that are three rows high: 14 cycles each, 10 if narrow; one less where limits are int8's own. */
#define BT_XCV_TWO_LIMITS                                                                                              \
    BT_XCV_MAX("%[s]", "%[s]", "%[lo]") BT_XCV_MAX("%[t]", "%[t]", "%[lo]")                                            \
    BT_XCV_MIN("%[s]", "%[s]", "%[hi]") BT_XCV_MIN("%[t]", "%[t]", "%[hi]")
#define BT_XCV_TWO_CLIPS BT_XCV_CLIP8("%[s]", "%[s]") BT_XCV_CLIP8("%[t]", "%[t]")
#define BT_QCONV2D_TWICE_XCV(multiply, count, limits)                                                                  \
    __asm__ volatile(BT_XCV_LOOP("%[n]", count)                                                                        \
                     "lw %[b], 4(%[x])\n\tlw %[c], 8(%[x])\n\t"                                                        \
                     BT_XCV_LW_BY("%[a]", "%[x]", "%[step]") "mv %[s], %[bias]\n\tmv %[t], %[bias]\n\t"                \
                     BT_XCV_DOT("%[s]", "%[b]", "%[w1]") BT_XCV_DOT("%[s]", "%[c]", "%[w2]")                           \
                     BT_XCV_DOT("%[s]", "%[a]", "%[w0]") BT_XCV_DOT("%[t]", "%[b]", "%[v1]")                           \
                     BT_XCV_DOT("%[t]", "%[c]", "%[v2]") BT_XCV_DOT("%[t]", "%[a]", "%[v0]")                           \
                     multiply " %[s], %[s], %[factor]\n\t" multiply " %[t], %[t], %[factor]\n\t"                       \
                     BT_XCV_ROUND("%[s]", "%[offset]", "%[right]") BT_XCV_ROUND("%[t]", "%[offset]", "%[right]")       \
                     limits                                                                                            \
                     BT_XCV_SB_BY("%[s]", "%[y]", "%[pitch]") BT_XCV_SB_BY("%[t]", "%[z]", "%[pitch]")                 \
                     BT_XCV_LOOP_END                                                                                   \
                     : [x] "+&r"(x), [y] "+&r"(y), [z] "+&r"(z), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),             \
                       [s] "=&r"(s), [t] "=&r"(t)                                                                      \
                     : [n] "r"(n), [step] "r"(step), [bias] "r"(bias), [w0] "r"(taps[0]), [w1] "r"(taps[1]),           \
                       [w2] "r"(taps[2]), [v0] "r"((int32_t)((uint32_t)taps[0] << 8)), [v1] "r"((int32_t)((uint32_t)taps[1] << 8)), [v2] "r"((int32_t)((uint32_t)taps[2] << 8)),      \
                       [factor] "r"(factor), [offset] "r"(r->offset), [right] "r"(r->right), [lo] "r"(r->lo),          \
                       [hi] "r"(r->hi), [pitch] "r"(pitch)                                                             \
                     : "memory")

BT_INLINE void bt_qconv2d_twice_xcv(const bt_xcv_rule *r, int narrow, const int32_t *x, int32_t step,
                                    const int32_t *taps, int32_t bias, int32_t factor, int8_t *y, int8_t *z,
                                    int32_t pitch, int32_t n)
{
    int32_t a, b, c, s, t;
    const int clips = r->lo == -128 && r->hi == 127;
    if (narrow && clips)
        BT_QCONV2D_TWICE_XCV("mul", "19", BT_XCV_TWO_CLIPS);
    else if (narrow)
        BT_QCONV2D_TWICE_XCV("mul", "21", BT_XCV_TWO_LIMITS);
    else if (clips)
        BT_QCONV2D_TWICE_XCV("mulhsu", "19", BT_XCV_TWO_CLIPS);
    else
        BT_QCONV2D_TWICE_XCV("mulhsu", "21", BT_XCV_TWO_LIMITS);
}

/* Pixels of x and of y are `pitch` apart. */
BT_INLINE void bt_qconv2d_each_channel_xcv(const bt_qconv2d *p, int32_t pitch, const int8_t *x, const int32_t *weight,
                                           const int32_t *bias, const int32_t *factor, int8_t *y, int32_t *words,
                                           int narrow)
{
    const bt_xcv_rule rule = bt_xcv_rule_of(narrow, p->shift, p->zero, p->lo, p->hi);
    const int32_t columns = (p->out_w - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w + 1;
    const int32_t row = p->out_w * pitch;
    int8_t *const blank = (int8_t *)(words + p->in * columns);
    const int three = p->kernel_w == 3 && p->dilation_w == 1 && rule.left == 0;
    const int twice = three && p->kernel_h == 3 && p->stride_h == 1 && p->dilation_h == 1;
    bt_xcv_fill(blank, p->x_zero, p->in);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * pitch) {
        for (int32_t h = 0, rows; h < p->out_h; h += rows, y += rows * row) {
            rows = twice && h + 1 < p->out_h ? 2 : 1;
            bt_qconv2d_columns_xcv(p, pitch, x, h * p->stride_h - p->pad_top, p->kernel_h + rows - 1, columns, words,
                                   blank);
            const int32_t *window = words, *taps = weight;
            for (int32_t c = 0; c < p->in; c++, window += columns, taps += p->kernel_w) {
                if (rows == 2) {
                    bt_qconv2d_twice_xcv(&rule, narrow, window, 4 * p->stride_w, taps, bias[c], factor[c], y + c,
                                         y + c + row, pitch, p->out_w);
                } else if (three) {
                    bt_qconv2d_three_xcv(&rule, narrow, window, 4 * p->stride_w, taps, bias[c], factor[c], y + c, pitch,
                                         p->out_w);
                } else {
                    const int32_t *at = window;
                    int8_t *to = y + c;
                    for (int32_t w = 0; w < p->out_w; w++, at += p->stride_w, to += pitch) {
                        int32_t sum = bias[c];
                        for (int32_t k = 0; k < p->kernel_w; k++)
                            sum = bt_xcv_dot(sum, at[k * p->dilation_w], taps[k]);
                        *to = bt_xcv_output(&rule, narrow, sum, factor[c]);
                    }
                }
            }
        }
    }
}

/* weight: [in][kernel_w] words; scratch: [in][columns that a row of outputs reads] words, and a pixel */
BT_KERNEL void bt_qconv2d_depthwise_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                        const int32_t *factor, int8_t *y, void *scratch)
{
    bt_qconv2d_each_channel_xcv(p, p->in, x, weight, bias, factor, y, (int32_t *)scratch, 0);
}

BT_KERNEL void bt_qconv2d_depthwise_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight,
                                               const int32_t *bias, const int32_t *factor, int8_t *y, void *scratch)
{
    bt_qconv2d_each_channel_xcv(p, p->in, x, weight, bias, factor, y, (int32_t *)scratch, 1);
}

BT_KERNEL void bt_qconv2d_channels_depthwise_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight,
                                                 const int32_t *bias, const int32_t *factor, int8_t *y, void *scratch)
{
    bt_qconv2d_each_channel_xcv(&p->layer, p->y_stride, x, weight, bias, factor, y, (int32_t *)scratch, 0);
}

BT_KERNEL void bt_qconv2d_channels_depthwise_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x,
                                                        const int32_t *weight, const int32_t *bias,
                                                        const int32_t *factor, int8_t *y, void *scratch)
{
    bt_qconv2d_each_channel_xcv(&p->layer, p->y_stride, x, weight, bias, factor, y, (int32_t *)scratch, 1);
}
