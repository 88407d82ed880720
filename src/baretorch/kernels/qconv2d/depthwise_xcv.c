/* qconv2d with groups == in == out for CV32E40P.
 *
 * What a row of outputs reads is brought to scratch with a channel's rows of a column as the bytes of a word, so that a
 * window is kernel_w words, and each takes one instruction to multiply: 3 for the 9 products of a 3x3 window. */
#include "../xcv.h"
#include "qconv2d.h"

/* Words of four channels from four rows become words of four rows from four channels. */
BT_INLINE void bt_qconv2d_turn_xcv(int32_t *to, int32_t step, int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t low = 0x05010400, high = 0x07030602;
    int32_t ab = a, cd = c, p, q;
    __asm__(".insn r 0x7b, 1, 0x70, %0, %1, %2" : "+r"(ab) : "r"(b), "r"(low)); /* cv.shuffle2.b */
    __asm__(".insn r 0x7b, 1, 0x70, %0, %1, %2" : "+r"(cd) : "r"(d), "r"(low));
    __asm__(".insn r 0x7b, 1, 0x70, %0, %1, %2" : "+r"(a) : "r"(b), "r"(high));
    __asm__(".insn r 0x7b, 1, 0x70, %0, %1, %2" : "+r"(c) : "r"(d), "r"(high));
    __asm__(".insn r 0x7b, 0, 0x78, %0, %1, %2" : "=r"(p) : "r"(cd), "r"(ab)); /* cv.pack */
    __asm__(".insn r 0x7b, 0, 0x79, %0, %1, %2" : "=r"(q) : "r"(cd), "r"(ab)); /* cv.pack.h */
    to[0] = p;
    to[step] = q;
    __asm__(".insn r 0x7b, 0, 0x78, %0, %1, %2" : "=r"(p) : "r"(c), "r"(a));
    __asm__(".insn r 0x7b, 0, 0x79, %0, %1, %2" : "=r"(q) : "r"(c), "r"(a));
    to[2 * step] = p;
    to[3 * step] = q;
}

BT_INLINE int32_t bt_qconv2d_word_xcv(const int8_t *x)
{
    int32_t word;
    __asm__("lw %0, 0(%1)" : "=r"(word) : "r"(x), "m"(*(const int8_t(*)[4])x)); /* need not be aligned */
    return word;
}

/* The column `w` of the image to place `at` of each channel's words. */
BT_INLINE void bt_qconv2d_column_xcv(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t w, int32_t columns,
                                     int32_t *to)
{
    const int32_t outside = (int32_t)(0x01010101u * (uint8_t)p->x_zero);
    const int8_t *row[4];
    int inside[4];
    if (w < 0 || w >= p->in_w) {
        for (int32_t c = 0; c < p->in; c++, to += columns)
            *to = outside;
        return;
    }
    for (int32_t k = 0; k < 4; k++) {
        const int32_t h = top + k * p->dilation_h;
        inside[k] = k < p->kernel_h && h >= 0 && h < p->in_h;
        row[k] = inside[k] ? x + (h * p->in_w + w) * p->in : x;
    }
    if (inside[0] && inside[1] && inside[2] && p->kernel_h == 3) { /* most are so */
        for (int32_t c = 0; c < p->in; c += 4, to += 4 * columns)
            bt_qconv2d_turn_xcv(to, columns, bt_qconv2d_word_xcv(row[0] + c), bt_qconv2d_word_xcv(row[1] + c),
                                bt_qconv2d_word_xcv(row[2] + c), 0);
        return;
    }
    for (int32_t c = 0; c < p->in; c += 4, to += 4 * columns) {
        int32_t word[4];
        for (int32_t k = 0; k < 4; k++)
            word[k] = inside[k] ? bt_qconv2d_word_xcv(row[k] + c) : outside;
        bt_qconv2d_turn_xcv(to, columns, word[0], word[1], word[2], word[3]);
    }
}

/* weight: [in][kernel_w] words; scratch: [in][columns that a row of outputs reads] words */
BT_KERNEL void bt_qconv2d_depthwise_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                        const int32_t *multiplier, int8_t *y, void *scratch)
{
    const int32_t columns = (p->out_w - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w + 1;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            int32_t *const words = (int32_t *)scratch;
            for (int32_t w = 0; w < columns; w++)
                bt_qconv2d_column_xcv(p, x, h * p->stride_h - p->pad_top, w - p->pad_left, columns, words + w);
            for (int32_t c = 0; c < p->in; c++) {
                const int32_t *window = words + c * columns, *const taps = weight + c * p->kernel_w;
                const int32_t first = bias[c], factor = multiplier[c];
                int8_t *to = y + c;
                if (p->kernel_w == 3) {
                    const int32_t w0 = taps[0], w1 = taps[1], w2 = taps[2];
                    for (int32_t w = 0; w < p->out_w; w++, window += p->stride_w, to += p->out) {
                        int32_t sum = first;
                        sum = bt_xcv_dot(sum, window[0], w0);
                        sum = bt_xcv_dot(sum, window[p->dilation_w], w1);
                        sum = bt_xcv_dot(sum, window[2 * p->dilation_w], w2);
                        *to = bt_requantize(sum, factor, p->shift, p->zero, p->lo, p->hi);
                    }
                } else {
                    for (int32_t w = 0; w < p->out_w; w++, window += p->stride_w, to += p->out) {
                        int32_t sum = first;
                        for (int32_t k = 0; k < p->kernel_w; k++)
                            sum = bt_xcv_dot(sum, window[k * p->dilation_w], taps[k]);
                        *to = bt_requantize(sum, factor, p->shift, p->zero, p->lo, p->hi);
                    }
                }
            }
        }
    }
}
