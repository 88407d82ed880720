/* qconv2d, depthwise, three rows of the output at a time; see ../triples.h.
 *
 * For each channel the rows that three rows of the output read are packed, column by column: a window is then
 * kernel_w columns that lie together, and the next window begins stride_w columns further. */
#include "../triples.h"
#include "qconv2d.h"

/* A row of the channel at x for each position, of which some may lie outside of the image. */
BT_INLINE void bt_qconv2d_pack_row(const bt_qconv2d *p, uint32_t *to, const int8_t *x, const int32_t row[3],
                                   int32_t columns)
{
    const int8_t *from[3];
    int inside = 1;
    for (int32_t k = 0; k < 3; k++) {
        from[k] = row[k] >= 0 && row[k] < p->in_h ? x + row[k] * p->in_w * p->in : NULL;
        inside = inside && from[k];
    }
    if (inside) {
        bt_triples_pack(to, 8 * p->kernel_h, from[0], from[1], from[2], p->in, columns);
        return;
    }
    for (int32_t i = 0; i < columns; i++) {
        int8_t v[3];
        for (int32_t k = 0; k < 3; k++)
            v[k] = from[k] ? from[k][i * p->in] : (int8_t)p->x_zero;
        to = bt_triples_pack(to, 8 * p->kernel_h, &v[0], &v[1], &v[2], 1, 1);
    }
}

/* scratch: 8 bytes for each row of the kernel in each column that a window reaches, 8 more, 4 bytes a tap (taps rounded
 * up to an even number), and 8 bytes */
BT_KERNEL void bt_qconv2d_depthwise_triples(const bt_qconv2d *p, const int8_t *x, const int8_t *weight,
                                            const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    const int32_t even = (taps + 1) & ~1;
    const int32_t columns = (p->out_w - 1) * p->stride_w + p->kernel_w;
    const int32_t right = columns - p->pad_left < p->in_w ? columns - p->pad_left : p->in_w;
    const int32_t row = p->out_w * p->out;
    uint32_t *const packed = scratch;
    int32_t *const expanded = (int32_t *)(packed + 2 * (p->kernel_h * columns + 1));
    uint32_t *const heads = (uint32_t *)(expanded + even);
    const int8_t zero = (int8_t)p->x_zero;
    expanded[even - 1] = 0;
    heads[0] = heads[1] = 0;
    /* Columns beside the image keep their zero points. */
    for (int32_t i = 0; i < p->kernel_h * columns; i++)
        bt_triples_pack(packed + 2 * i, 8, &zero, &zero, &zero, 1, 1);
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t h = 0; h < p->out_h; h += 3) {
            /* Below the last row stands that one again. */
            const int32_t more = p->out_h - 1 - h < 2 ? p->out_h - 1 - h : 2;
            for (int32_t c = 0; c < p->in; c++) {
                for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                    int32_t rows[3];
                    for (int32_t k = 0; k < 3; k++)
                        rows[k] = (h + (k < more ? k : more)) * p->stride_h - p->pad_top + kh * p->dilation_h;
                    bt_qconv2d_pack_row(p, packed + 2 * (p->pad_left * p->kernel_h + kh), x + c, rows, right);
                }
                for (int32_t t = 0; t < taps; t++)
                    expanded[t] = weight[c * taps + t];
                bt_triples s = {
                    .x = packed,
                    .w = expanded,
                    .terms = terms + 2 * c,
                    .y = y + c,
                    .x_step = 8 * p->kernel_h * p->stride_w,
                    .y_step = p->out,
                    .heads = heads,
                    .heads_end = heads + 2,
                    .first = even,
                    .words = 1,
                    .round = (1 << 15) + (p->zero - p->lo) * (1 << 16),
                    .lo = p->lo,
                    .range = p->hi - p->lo,
                    .y1 = more < 1 ? 0 : row,
                    .y2 = more < 2 ? 0 : row,
                    .count = p->out_w,
                };
                bt_triples_run(&s);
            }
            y += (more + 1) * row;
        }
        x += p->in_h * p->in_w * p->in;
    }
}
