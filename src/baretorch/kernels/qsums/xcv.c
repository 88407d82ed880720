/* qsums for CV32E40P.
 *
 * As the convolution does it (qconv2d/xcv.c): windows of one pixel are read where they are, others are brought to scratch,
 * four are taken at a time, each with four outputs. Sums come from y and go back there: 2.7 products per cycle in the
 * inner loop, of one window alone 1.8. */
#include "../xcv.h"
#include "qsums.h"

/* Four windows at a time; the rest is in memory, because all registers are taken. */
typedef struct {
    const int8_t *x[4];
    const int32_t *weight;
    int32_t *y;
    int32_t step[3]; /* bytes from a window's sums to those of the next */
    int32_t words, fours;
} bt_qsums_block;

#define BT_QSUMS_LOAD(s0, s1, s2, s3) "lw " s0 ", 0(a5)\n\tlw " s1 ", 4(a5)\n\tlw " s2 ", 8(a5)\n\tlw " s3 ", 12(a5)\n\t"
#define BT_QSUMS_STORE(s0, s1, s2, s3) "sw " s0 ", 0(a5)\n\tsw " s1 ", 4(a5)\n\tsw " s2 ", 8(a5)\n\tsw " s3 ", 12(a5)\n\t"

/* All sums are read before the first is written: if there are less than four windows, the last is repeated. */
BT_SHARED void bt_qsums_four_by_four_xcv(bt_qsums_block *block)
{
    register bt_qsums_block *at __asm__("a0") = block;
    __asm__ volatile("1:\n\t"
                     "lw a5, 20(a0)\n\tlw a6, 24(a0)\n\t" BT_QSUMS_LOAD("s0", "s1", "s2", "s3")
                     "add a5, a5, a6\n\tlw a6, 28(a0)\n\t" BT_QSUMS_LOAD("s4", "s5", "s6", "s7")
                     "add a5, a5, a6\n\tlw a6, 32(a0)\n\t" BT_QSUMS_LOAD("s8", "s9", "s10", "s11")
                     "add a5, a5, a6\n\t" BT_QSUMS_LOAD("t3", "t4", "t5", "t6")
                     "lw a5, 16(a0)\n\tlw a1, 0(a0)\n\tlw a2, 4(a0)\n\tlw a3, 8(a0)\n\tlw a4, 12(a0)\n\tlw a6, 36(a0)\n\t"
                     BT_XCV_LOOP("a6", "24")
                     BT_XCV_LW("t0", "a5") BT_XCV_LW("t1", "a5") BT_XCV_LW("t2", "a5") BT_XCV_LW("ra", "a5")
                     BT_XCV_LW("a6", "a1") BT_XCV_LW("a7", "a2")
                     BT_XCV_FOUR_DOTS("a6", "s0", "s1", "s2", "s3") BT_XCV_LW("a6", "a3")
                     BT_XCV_FOUR_DOTS("a7", "s4", "s5", "s6", "s7") BT_XCV_LW("a7", "a4")
                     BT_XCV_FOUR_DOTS("a6", "s8", "s9", "s10", "s11")
                     BT_XCV_FOUR_DOTS("a7", "t3", "t4", "t5", "t6")
                     BT_XCV_LOOP_END
                     "sw a5, 16(a0)\n\tlw a5, 20(a0)\n\tlw a6, 24(a0)\n\taddi a7, a5, 16\n\tsw a7, 20(a0)\n\t"
                     BT_QSUMS_STORE("s0", "s1", "s2", "s3") "add a5, a5, a6\n\tlw a6, 28(a0)\n\t"
                     BT_QSUMS_STORE("s4", "s5", "s6", "s7") "add a5, a5, a6\n\tlw a6, 32(a0)\n\t"
                     BT_QSUMS_STORE("s8", "s9", "s10", "s11") "add a5, a5, a6\n\tlw a6, 40(a0)\n\t"
                     BT_QSUMS_STORE("t3", "t4", "t5", "t6")
                     "addi a6, a6, -1\n\tsw a6, 40(a0)\n\tbnez a6, 1b\n\t"
                     : "+&r"(at)
                     :
                     : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
                       "s8", "s9", "s10", "s11", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "memory");
}

/* The sums of one window from output `o` on. Returns the address after their weights. */
BT_SHARED const int32_t *bt_qsums_window_xcv(int32_t words, int32_t out, const int32_t *w, const int8_t *window, int32_t o,
                                             int32_t *y)
{
    for (; o < out; o += 4) {
        const int32_t count = out - o;
        const int8_t *x = window;
        int32_t s0 = y[o], s1 = count > 1 ? y[o + 1] : 0, s2 = count > 2 ? y[o + 2] : 0, s3 = count > 3 ? y[o + 3] : 0;
        int32_t a, w0, w1, w2, w3;
        BT_XCV_WORDS(words);
        y[o] = s0;
        if (count > 1)
            y[o + 1] = s1;
        if (count > 2)
            y[o + 2] = s2;
        if (count > 3)
            y[o + 3] = s3;
    }
    return w;
}

/* Windows that wait for others, up to four. */
typedef struct {
    const int8_t *x[4];
    int32_t *y[4];
    int32_t count, words, out;
    const int32_t *weight;
} bt_qsums_windows;

BT_INLINE bt_qsums_windows bt_qsums_windows_xcv(const bt_qsums *p, const int32_t *weight)
{
    const bt_qsums_windows none = { .count = 0, .words = (p->kernel_h * p->kernel_w * p->in + 3) >> 2, .out = p->out,
                                    .weight = weight };
    return none;
}

BT_INLINE void bt_qsums_make_xcv(bt_qsums_windows *v)
{
    const int32_t count = v->count, fours = v->out >> 2;
    v->count = 0;
    if (count < 2 || fours == 0) {
        for (int32_t i = 0; i < count; i++)
            bt_qsums_window_xcv(v->words, v->out, v->weight, v->x[i], 0, v->y[i]);
        return;
    }
    for (int32_t i = count; i < 4; i++) {
        v->x[i] = v->x[count - 1];
        v->y[i] = v->y[count - 1];
    }
    bt_qsums_block b = { .weight = v->weight, .y = v->y[0], .words = v->words, .fours = fours };
    for (int32_t i = 0; i < 4; i++) {
        b.x[i] = v->x[i];
        if (i != 0)
            b.step[i - 1] = 4 * (int32_t)(v->y[i] - v->y[i - 1]);
    }
    bt_qsums_four_by_four_xcv(&b);
    if ((v->out & 3) != 0)
        for (int32_t i = 0; i < count; i++)
            bt_qsums_window_xcv(v->words, v->out, b.weight, v->x[i], 4 * fours, v->y[i]);
}

BT_INLINE void bt_qsums_add_xcv(bt_qsums_windows *v, const int8_t *x, int32_t *y)
{
    v->x[v->count] = x;
    v->y[v->count] = y;
    if (++v->count == 4)
        bt_qsums_make_xcv(v);
}

BT_INLINE void bt_qsums_each_pixel_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, int32_t *y)
{
    bt_qsums_windows windows = bt_qsums_windows_xcv(p, weight);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->x_stride)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++, y += p->y_stride)
                bt_qsums_add_xcv(&windows, x + (h * p->stride_h * p->in_w + w * p->stride_w) * p->x_stride, y);
    bt_qsums_make_xcv(&windows);
}

BT_XCV_BRING(bt_qsums_bring_xcv, bt_qsums, x_stride)

BT_INLINE void bt_qsums_each_window_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, int32_t *y,
                                        int8_t *scratch)
{
    bt_qsums_windows windows = bt_qsums_windows_xcv(p, weight);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->x_stride) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += p->y_stride) {
                int8_t *const window = scratch + 4 * windows.words * windows.count;
                bt_qsums_bring_xcv(p, x, h * p->stride_h - p->pad_top, w * p->stride_w - p->pad_left, window);
                bt_qsums_add_xcv(&windows, window, y);
            }
        }
    }
    bt_qsums_make_xcv(&windows);
}

/* The first values of y: the sums so far, unless they are there already, or biases. */
BT_INLINE void bt_qsums_begin_xcv(const bt_qsums *p, const int32_t *from, int32_t step, int32_t *y)
{
    const int32_t pixels = p->batch * p->out_h * p->out_w;
    if (from == y)
        return;
    for (int32_t i = 0; i < pixels; i++, from += step, y += p->y_stride)
        for (int32_t o = 0; o < p->out; o++)
            y[o] = from[o];
}

BT_KERNEL void bt_qsums_pixels_xcv(const bt_qsums *p, const int8_t *x, const int32_t *sums, const int32_t *weight,
                                   int32_t *y)
{
    bt_qsums_begin_xcv(p, sums, p->y_stride, y);
    bt_qsums_each_pixel_xcv(p, x, weight, y);
}

BT_KERNEL void bt_qsums_pixels_first_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                         int32_t *y)
{
    bt_qsums_begin_xcv(p, bias, 0, y);
    bt_qsums_each_pixel_xcv(p, x, weight, y);
}

/* scratch: four windows, each rounded up to words */
BT_KERNEL void bt_qsums_xcv(const bt_qsums *p, const int8_t *x, const int32_t *sums, const int32_t *weight, int32_t *y,
                            void *scratch)
{
    bt_qsums_begin_xcv(p, sums, p->y_stride, y);
    bt_qsums_each_window_xcv(p, x, weight, y, (int8_t *)scratch);
}

BT_KERNEL void bt_qsums_first_xcv(const bt_qsums *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                  int32_t *y, void *scratch)
{
    bt_qsums_begin_xcv(p, bias, 0, y);
    bt_qsums_each_window_xcv(p, x, weight, y, (int8_t *)scratch);
}
