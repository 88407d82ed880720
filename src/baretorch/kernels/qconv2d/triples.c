/* qconv2d, one group, three positions at a time; see ../triples.h. */
#include "../triples.h"
#include "qconv2d.h"

/* Return the address of a window's pixel, or `outside`. */
BT_INLINE const int8_t *bt_qconv2d_pixel(const bt_qconv2d *p, const int8_t *x, int32_t h, int32_t w,
                                         const int8_t *outside)
{
    return h >= 0 && h < p->in_h && w >= 0 && w < p->in_w ? x + (h * p->in_w + w) * p->in : outside;
}

/* The windows at (top + down, left + right) of each position, packed. A row of them is read in one go where none of them
 * leaves the image on a side. */
BT_INLINE void bt_qconv2d_gather_three(const bt_qconv2d *p, const int8_t *x, const int32_t top[3],
                                       const int32_t left[3], int32_t down, int32_t right,
                                       const int8_t *outside, uint32_t *to)
{
    int whole = p->dilation_w == 1;
    for (int32_t k = 0; k < 3; k++)
        whole = whole && left[k] + right >= 0 && left[k] + right + p->kernel_w <= p->in_w;
    const int32_t steps = whole ? 1 : p->kernel_w;
    const int32_t count = whole ? p->kernel_w * p->in : p->in;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        int32_t w = right;
        for (int32_t kw = 0; kw < steps; kw++) {
            to = bt_triples_pack(to, 8, bt_qconv2d_pixel(p, x, top[0] + down, left[0] + w, outside),
                                 bt_qconv2d_pixel(p, x, top[1] + down, left[1] + w, outside),
                                 bt_qconv2d_pixel(p, x, top[2] + down, left[2] + w, outside), 1, count);
            w += p->dilation_w;
        }
        down += p->dilation_h;
    }
}

/* Positions of y are *y_stride apart, which is p->out itself where nothing is cut, and with a pool. */
BT_INLINE void bt_qconv2d_triples_any(const bt_qconv2d *p, const int32_t *y_stride, const int8_t *x,
                                      const uint8_t *weight, const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t taps = (p->kernel_h * p->kernel_w * p->in + 1) & ~1;
    const int32_t row = p->kernel_w * p->in;
    uint32_t *const packed = (uint32_t *)scratch;
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
        int32_t h = 0, w = 0; /* of the next output */
        s.y1 = s.y2 = *y_stride;
        while (h < p->out_h) {
            int32_t top[3], left[3];
            for (int32_t k = 0; k < 3; k++) {
                /* The last output is repeated after itself. */
                if (h == p->out_h) {
                    s.y1 = k == 1 ? 0 : s.y1;
                    s.y2 = 0;
                    top[k] = top[k - 1];
                    left[k] = left[k - 1];
                    continue;
                }
                top[k] = h * p->pool_h * p->stride_h - p->pad_top;
                left[k] = w * p->pool_w * p->stride_w - p->pad_left;
                w++;
                if (w == p->out_w) {
                    w = 0;
                    h++;
                }
            }
            const int32_t last = s.y1 + s.y2; /* from the first position to the last */
            for (int32_t ph = 0; ph < p->pool_h * p->stride_h; ph += p->stride_h) {
                for (int32_t pw = 0; pw < p->pool_w * p->stride_w; pw += p->stride_w) {
                    const int first = ph == 0 && pw == 0;
                    bt_qconv2d_gather_three(p, x, top, left, ph, pw, outside, packed);
                    bt_triples_heads(heads, packed, taps);
                    s.w = weight;
                    s.terms = terms;
                    s.y = first ? y : others;
                    s.count = p->out;
                    bt_triples_run(&s);
                    /* Outputs grow with their sums: the largest of the pool's window is that of the largest sum. */
                    for (int32_t i = 0; !first && i < last + p->out; i++)
                        y[i] = others[i] > y[i] ? others[i] : y[i];
                }
            }
            y += last + *y_stride;
        }
        x += p->in_h * p->in_w * p->in;
    }
}

/* All layers share these: their work for three positions is small compared with that for all channels. */
BT_SHARED void bt_qconv2d_triples_run(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight,
                                      const int32_t *terms, int8_t *y, void *scratch)
{
    bt_qconv2d_triples_any(p, &p->out, x, weight, terms, y, scratch);
}

BT_SHARED void bt_qconv2d_channels_triples_run(const bt_qconv2d_channels *p, const int8_t *x, const uint8_t *weight,
                                               const int32_t *terms, int8_t *y, void *scratch)
{
    bt_qconv2d_triples_any(&p->layer, &p->y_stride, x, weight, terms, y, scratch);
}

/* Pointwise, from the last positions to the first; kws on mps2-an385-v6m 9,936,385 to 9,890,653 instructions. */
BT_SHARED void bt_qconv2d_back_triples_run(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight,
                                           const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t taps = (p->in + 1) & ~1;
    uint32_t *const packed = (uint32_t *)scratch;
    uint32_t *const heads = packed + 2 * taps;
    packed[2 * taps - 2] = packed[2 * taps - 1] = 0;
    bt_triples s = bt_triples_of(taps, p->zero, p->lo, p->hi);
    s.x = packed;
    s.w_step = taps;
    s.term_step = 8;
    s.y_step = 1;
    s.heads = heads;
    s.heads_end = heads + 2 * ((taps + BT_TRIPLES_TAPS - 1) / BT_TRIPLES_TAPS);
    for (int32_t at = p->batch * p->out_h * p->out_w; at > 0;) {
        /* The last position is repeated after itself. */
        const int32_t more = (at - 1) % 3;
        at -= more + 1;
        const int8_t *const from = x + at * p->in;
        bt_triples_pack(packed, 8, from, from + (more > 0 ? p->in : 0), from + more * p->in, 1, p->in);
        bt_triples_heads(heads, packed, taps);
        s.y1 = more > 0 ? p->out : 0;
        s.y2 = more > 1 ? p->out : 0;
        s.w = weight;
        s.terms = terms;
        s.y = y + at * p->out;
        s.count = p->out;
        bt_triples_run(&s);
    }
}

/* scratch: 8 bytes a tap, taps rounded up to an even number; 8 bytes for each 64 taps; a row of the kernel in bytes; and
 * the bytes of three outputs where a pool follows */
BT_KERNEL void bt_qconv2d_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                  int8_t *y, void *scratch)
{
    bt_qconv2d_triples_run(p, x, weight, terms, y, scratch);
}

BT_KERNEL void bt_qconv2d_back_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight,
                                       const int32_t *terms, int8_t *y, void *scratch)
{
    bt_qconv2d_back_triples_run(p, x, weight, terms, y, scratch);
}

BT_KERNEL void bt_qconv2d_channels_triples(const bt_qconv2d_channels *p, const int8_t *x, const uint8_t *weight,
                                           const int32_t *terms, int8_t *y, void *scratch)
{
    bt_qconv2d_channels_triples_run(p, x, weight, terms, y, scratch);
}
