/* qconv2d, one group, three positions at a time; see ../triples.h. */
#include "../triples.h"
#include "qconv2d.h"

/* Where a window's pixel lies, or `outside`. */
BT_INLINE const int8_t *bt_qconv2d_pixel(const bt_qconv2d *p, const int8_t *x, int32_t h, int32_t w,
                                         const int8_t *outside)
{
    return h >= 0 && h < p->in_h && w >= 0 && w < p->in_w ? x + (h * p->in_w + w) * p->in : outside;
}

/* The windows that begin at (top, left) of each position, packed. A row of them is read in one go where none of them
 * leaves the image on a side. */
BT_INLINE void bt_qconv2d_gather(const bt_qconv2d *p, const int8_t *x, const int32_t top[3], const int32_t left[3],
                                 const int8_t *outside, uint32_t *to)
{
    int whole = p->dilation_w == 1;
    for (int32_t k = 0; k < 3; k++)
        whole = whole && left[k] >= 0 && left[k] + p->kernel_w <= p->in_w;
    const int32_t steps = whole ? 1 : p->kernel_w;
    const int32_t count = whole ? p->kernel_w * p->in : p->in;
    for (int32_t kh = 0; kh < p->kernel_h * p->dilation_h; kh += p->dilation_h) {
        for (int32_t kw = 0; kw < steps * p->dilation_w; kw += p->dilation_w) {
            to = bt_triples_pack(to, 8, bt_qconv2d_pixel(p, x, top[0] + kh, left[0] + kw, outside),
                                 bt_qconv2d_pixel(p, x, top[1] + kh, left[1] + kw, outside),
                                 bt_qconv2d_pixel(p, x, top[2] + kh, left[2] + kw, outside), 1, count);
        }
    }
}

/* scratch: 8 bytes a tap, taps rounded up to an even number; 8 bytes for each 64 taps; a row of the kernel in bytes; and
 * the bytes of three outputs where a pool follows */
BT_KERNEL void bt_qconv2d_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                  int8_t *y, void *scratch)
{
    const int32_t taps = (p->kernel_h * p->kernel_w * p->in + 1) & ~1;
    const int32_t row = p->kernel_w * p->in;
    const int32_t outputs = p->out_h * p->out_w;
    uint32_t *const packed = scratch;
    uint32_t *const heads = packed + 2 * taps;
    uint32_t *const heads_end = heads + 2 * ((taps + BT_TRIPLES_TAPS - 1) / BT_TRIPLES_TAPS);
    int8_t *const outside = (int8_t *)heads_end;
    int8_t *const others = outside + row;
    __builtin_memset(outside, p->x_zero, (size_t)row);
    packed[2 * taps - 2] = packed[2 * taps - 1] = 0;
    bt_triples s = bt_triples_of(taps, p->zero, p->lo, p->hi);
    s.x = packed;
    s.w_step = taps;
    s.term_step = 8;
    s.y_step = 1;
    s.heads = heads;
    s.heads_end = heads_end;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t at = 0; at < outputs; at += 3) {
            /* Behind the last output stands that one again. */
            const int32_t more = outputs - 1 - at < 2 ? outputs - 1 - at : 2;
            for (int32_t place = 0; place < p->pool_h * p->pool_w; place++) {
                int32_t top[3], left[3];
                for (int32_t k = 0; k < 3; k++) {
                    const int32_t output = at + (k < more ? k : more);
                    const int32_t h = output / p->out_w * p->pool_h + place / p->pool_w;
                    const int32_t w = output % p->out_w * p->pool_w + place % p->pool_w;
                    top[k] = h * p->stride_h - p->pad_top;
                    left[k] = w * p->stride_w - p->pad_left;
                }
                bt_qconv2d_gather(p, x, top, left, outside, packed);
                bt_triples_heads(heads, packed, taps);
                s.w = weight;
                s.terms = terms;
                s.y = place ? others : y;
                s.y1 = more < 1 ? 0 : p->out;
                s.y2 = more < 2 ? 0 : p->out;
                s.count = p->out;
                bt_triples_run(&s);
                /* Outputs grow with their sums: the largest of the pool's window is that of the largest sum. */
                for (int32_t i = 0; place && i < (more + 1) * p->out; i++)
                    y[i] = others[i] > y[i] ? others[i] : y[i];
            }
            y += (more + 1) * p->out;
        }
        x += p->in_h * p->in_w * p->in;
    }
}
