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

/* scratch: 8 bytes a tap, taps rounded up to an even number, 8 bytes for each 64 taps, and a kernel's row of bytes */
BT_KERNEL void bt_qconv2d_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                  int8_t *y, void *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w * p->in;
    const int32_t even = (taps + 1) & ~1;
    uint32_t *const packed = scratch;
    uint32_t *const heads = packed + 2 * even;
    int8_t *const outside = (int8_t *)(heads + 2 * ((even + BT_TRIPLES_TAPS - 1) / BT_TRIPLES_TAPS));
    __builtin_memset(outside, p->x_zero, (size_t)(p->kernel_w * p->in));
    packed[2 * even - 2] = packed[2 * even - 1] = 0;
    bt_triples s = {
        .taps = even,
        .w_step = even,
        .term_step = 2,
        .y_step = 1,
        .round = (1 << 15) + (p->zero - p->lo) * (1 << 16),
        .lo = p->lo,
        .range = p->hi - p->lo,
    };
    const int32_t outputs = p->out_h * p->out_w;
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t at = 0; at < outputs; at += 3) {
            /* Behind the last output stands that one again. */
            const int32_t more = outputs - 1 - at;
            s.y1 = more < 1 ? 0 : p->out;
            s.y2 = more < 2 ? s.y1 : 2 * p->out;
            for (int32_t place = 0; place < p->pool_h * p->pool_w; place++) {
                int32_t top[3], left[3];
                for (int32_t k = 0; k < 3; k++) {
                    const int32_t output = at + (more < k ? more : k);
                    const int32_t h = output / p->out_w * p->pool_h + place / p->pool_w;
                    const int32_t w = output % p->out_w * p->pool_w + place % p->pool_w;
                    top[k] = h * p->stride_h - p->pad_top;
                    left[k] = w * p->stride_w - p->pad_left;
                }
                s.larger = place;
                bt_qconv2d_gather(p, x, top, left, outside, packed);
                bt_triples_heads(heads, packed, even);
                bt_triples_run(&s, heads, packed, weight, terms, y, p->out);
            }
            y += more < 2 ? (more + 1) * p->out : 3 * p->out;
        }
        x += p->in_h * p->in_w * p->in;
    }
}
