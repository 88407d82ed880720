/* int8 pools for CV32E40P: four channels at a time. */
#include "walk.h"

#include "../xcv.h"

BT_INLINE void bt_qmax_each_xcv(const bt_qmax_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    (void)p;
    int32_t c = 0;
    for (; c < (w->channels & ~3); c += 4) {
        int32_t max = (int32_t)0x80808080u;
        const int8_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int8_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->pitch)
                max = bt_xcv_max4(max, bt_xcv_word(at));
        }
        bt_xcv_put_word(y + c, max);
    }
    for (; c < w->channels; c++)
        bt_qmax_channel(w, c, y);
}

/* s[i] += byte i of `n` words, which are `step` bytes apart: a dot product with a one picks a byte. 6 cycles for four. */
BT_INLINE void bt_qavg_column_xcv(int32_t *s, const int8_t *x, int32_t step, int32_t n)
{
    int32_t a, b, s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], pairs = n >> 1;
    const int32_t one = 1, two = 1 << 8, three = 1 << 16, four = 1 << 24;
    if (pairs != 0) {
        __asm__ volatile(BT_XCV_LOOP("%[n]", "10")
                         BT_XCV_LW_BY("%[a]", "%[x]", "%[step]") BT_XCV_LW_BY("%[b]", "%[x]", "%[step]")
                         BT_XCV_DOT("%[s0]", "%[a]", "%[one]") BT_XCV_DOT("%[s1]", "%[a]", "%[two]")
                         BT_XCV_DOT("%[s2]", "%[a]", "%[three]") BT_XCV_DOT("%[s3]", "%[a]", "%[four]")
                         BT_XCV_DOT("%[s0]", "%[b]", "%[one]") BT_XCV_DOT("%[s1]", "%[b]", "%[two]")
                         BT_XCV_DOT("%[s2]", "%[b]", "%[three]") BT_XCV_DOT("%[s3]", "%[b]", "%[four]")
                         BT_XCV_LOOP_END
                         : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3), [x] "+&r"(x), [a] "=&r"(a),
                           [b] "=&r"(b)
                         : [n] "r"(pairs), [step] "r"(step), [one] "r"(one), [two] "r"(two), [three] "r"(three),
                           [four] "r"(four)
                         : "memory");
    }
    if ((n & 1) != 0) {
        a = bt_xcv_word(x);
        s0 = bt_xcv_dot(s0, a, one), s1 = bt_xcv_dot(s1, a, two);
        s2 = bt_xcv_dot(s2, a, three), s3 = bt_xcv_dot(s3, a, four);
    }
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
}

BT_INLINE void bt_qavg_each_xcv(const bt_qavg_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    const int32_t start = -w->rows * w->columns * p->x_zero;
    const int together = w->columns * w->pitch == w->row_step; /* whole rows follow each other */
    const int32_t rows = together ? 1 : w->rows, columns = together ? w->rows * w->columns : w->columns;
    int32_t c = 0;
    for (; c < (w->channels & ~3); c += 4) {
        int32_t s[4] = { start, start, start, start };
        for (int32_t i = 0; i < rows; i++)
            bt_qavg_column_xcv(s, w->x + c + i * w->row_step, w->pitch, columns);
        for (int32_t i = 0; i < 4; i++)
            y[c + i] = bt_requantize(s[i], p->multiplier, p->shift, p->zero, -128, 127);
    }
    for (; c < w->channels; c++)
        bt_qavg_channel(p, w, c, y);
}

BT_QPOOL(bt_qavg_pool2d_xcv, bt_qavg_pool2d, bt_qavg_each_xcv)
BT_QPOOL(bt_qmax_pool2d_xcv, bt_qmax_pool2d, bt_qmax_each_xcv)
BT_QPOOL_CHANNELS(bt_qavg_pool2d_channels_xcv, bt_qavg_pool2d_channels, bt_qavg_each_xcv)
BT_QPOOL_CHANNELS(bt_qmax_pool2d_channels_xcv, bt_qmax_pool2d_channels, bt_qmax_each_xcv)
