/* qconv2d, depthwise, three rows of the output at a time; see ../triples.h.
 *
 * For each channel the rows that three rows of the output read are packed, column by column: a window is then
 * kernel_w contiguous columns, and the next window begins stride_w columns further. */
#ifndef BT_QCONV2D_DEPTHWISE_TRIPLES_H
#define BT_QCONV2D_DEPTHWISE_TRIPLES_H

#include "../triples.h"
#include "qconv2d.h"

/* Packs a row of the channel at x for each position; row[k] says how far from x, or is -1 outside of the image. */
BT_INLINE void bt_qconv2d_pack_row(const bt_qconv2d *p, uint32_t *to, const int8_t *x, const int32_t row[3],
                                   int32_t columns)
{
    const int32_t to_step = 8 * p->kernel_h;
    if ((row[0] | row[1] | row[2]) >= 0) {
        bt_triples_pack(to, to_step, x + row[0], x + row[1], x + row[2], p->in, columns);
        return;
    }
    for (int32_t i = 0; i < columns; i++) {
        int8_t v[3];
        for (int32_t k = 0; k < 3; k++)
            v[k] = row[k] >= 0 ? x[row[k] + i * p->in] : (int8_t)p->x_zero;
        to = bt_triples_pack(to, to_step, &v[0], &v[1], &v[2], 1, 1);
    }
}

/* All layers share this: its work for three rows is small compared with that for all columns. */
BT_SHARED void bt_qconv2d_depthwise_triples_run(const bt_qconv2d *p, const int8_t *x, const int8_t *weight,
                                                const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int32_t even = (taps + 1) & ~1;
    const int32_t columns = (p->out_w - 1) * p->stride_w + p->kernel_w;
    const int32_t right = columns - p->pad_left < p->in_w ? columns - p->pad_left : p->in_w; /* 1 or more */
    const int32_t line = p->out_w * p->out;
    uint32_t *const packed = (uint32_t *)scratch;
    int32_t *const expanded = (int32_t *)(packed + 2 * (p->kernel_h * columns + 1));
    uint32_t *const heads = (uint32_t *)(expanded + even);
    int32_t *const rows = (int32_t *)(heads + 2);
    const int8_t outside = (int8_t)p->x_zero;
    expanded[even - 1] = 0;
    heads[0] = heads[1] = 0;
    /* Columns outside of the image keep their zero points. */
    for (int32_t i = 0; i < p->kernel_h * columns; i++)
        bt_triples_pack(packed + 2 * i, 8, &outside, &outside, &outside, 1, 1);
    bt_triples s = bt_triples_of(even, p->zero, p->lo, p->hi);
    s.x_step = 8 * p->kernel_h * p->stride_w;
    s.y_step = p->out;
    s.heads = heads;
    s.heads_end = heads + 2;
    s.w = expanded;
    s.words = 1;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t h = 0; h < p->out_h; h += 3) {
            /* The last row is repeated below itself. */
            const int32_t more = p->out_h - 1 - h < 2 ? p->out_h - 1 - h : 2;
            for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                for (int32_t k = 0; k < 3; k++) {
                    const int32_t from = (h + (k < more ? k : more)) * p->stride_h - p->pad_top + kh * p->dilation_h;
                    rows[3 * kh + k] = from >= 0 && from < p->in_h ? from * p->in_w * p->in : -1;
                }
            }
            s.y1 = more < 1 ? 0 : line;
            s.y2 = more < 2 ? 0 : line;
            const int8_t *w = weight;
            for (int32_t c = 0; c < p->in; c++) {
                uint32_t *to = packed + 2 * p->pad_left * p->kernel_h;
                for (const int32_t *row = rows; row != rows + 3 * p->kernel_h; row += 3, to += 2)
                    bt_qconv2d_pack_row(p, to, x + c, row, right);
                for (int32_t t = 0; t < taps; t++)
                    expanded[t] = *w++;
                s.x = packed;
                s.terms = terms + 2 * c;
                s.y = y + c;
                s.count = p->out_w;
                bt_triples_run(&s);
            }
            y += (more + 1) * line;
        }
        x += p->in_h * p->in_w * p->in;
    }
}

#endif
