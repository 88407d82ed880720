/* qconv2d, one group, for Arm cores with Helium: the windows of two positions are brought together in scratch. */
#include "../int8_mve.h"
#include "qconv2d.h"

/* The window at (top, left), which may lie outside of the image. Columns of a row lie together unless dilated. */
BT_SHARED void bt_qconv2d_window_mve(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int8_t *to)
{
    const int32_t run = p->dilation_w == 1 ? p->kernel_w : 1;
    const int32_t row = p->kernel_w * p->in;
    for (int32_t kw = 0; kw < p->kernel_w; kw += run, left += p->dilation_w) {
        const int32_t first = bt_clamp_i32(-left, 0, run) * p->in; /* bytes: here begins the image, */
        const int32_t end = bt_clamp_i32(p->in_w - left, 0, run) * p->in; /* and here it ends */
        const int8_t *from = x + (top * p->in_w + left) * p->in;
        int8_t *at = to + kw * p->in;
        for (int32_t kh = 0, h = top; kh < p->kernel_h; kh++, h += p->dilation_h) {
            if (h < 0 || h >= p->in_h || end <= first) {
                bt_mve_fill(at, p->x_zero, run * p->in);
            } else {
                if (first > 0)
                    bt_mve_fill(at, p->x_zero, first);
                bt_mve_copy(at + first, from + first, end - first);
                if (end < run * p->in)
                    bt_mve_fill(at + end, p->x_zero, run * p->in - end);
            }
            from += p->dilation_h * p->in_w * p->in;
            at += row;
        }
    }
}

BT_INLINE bt_mve_layer bt_qconv2d_layer(const bt_qconv2d *p)
{
    const bt_mve_layer layer = { .taps = p->kernel_h * p->kernel_w * p->in,
                                 .out = p->out,
                                 .shift = p->shift,
                                 .zero = p->zero,
                                 .lo = p->lo,
                                 .hi = p->hi };
    return layer;
}

BT_SHARED void bt_qconv2d_shared_mve(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                     const int32_t *multiplier, int8_t *y, int8_t *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p);
    const int32_t size = bt_mve_window(layer.taps);
    const int32_t window = p->pool_h * p->pool_w;
    const int32_t outputs = window == 1 ? 2 : 1; /* made at a time */
    const int32_t windows = (window * outputs + 1) & ~1;
    bt_mve_fill(scratch, 0, windows * size);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int32_t h = 0, w = 0; /* of the next output */
        while (h < p->out_h) {
            int8_t *at = scratch;
            int8_t *const first = y;
            int8_t *second = 0;
            for (int32_t k = 0; k < outputs && h < p->out_h; k++) {
                second = k ? y : 0;
                for (int32_t i = h * p->pool_h; i < (h + 1) * p->pool_h; i++) {
                    for (int32_t j = w * p->pool_w; j < (w + 1) * p->pool_w; j++, at += size)
                        bt_qconv2d_window_mve(p, x, i * p->stride_h - p->pad_top, j * p->stride_w - p->pad_left, at);
                }
                y += p->out;
                if (++w == p->out_w) {
                    w = 0;
                    h++;
                }
            }
            if (window & 1 && !second) {
                /* One stands alone: it is its own neighbour. */
                bt_mve_copy(at, at - size, size);
                second = window == 1 ? first : 0;
            }
            bt_mve_outputs(&layer, scratch, windows, weight, bias, multiplier, first, second);
        }
    }
}

/* scratch: for each position of a pool's window, at least two and an even number, the taps rounded up to 16 */
BT_KERNEL void bt_qconv2d_mve(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_qconv2d_shared_mve(p, x, weight, bias, multiplier, y, scratch);
}

/* scratch: twice the input channels rounded up to 16 */
BT_KERNEL void bt_qconv2d_pixels_mve(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                     const int32_t *multiplier, int8_t *y, void *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p);
    bt_mve_rows(&layer, x, p->batch * p->in_h * p->in_w, weight, bias, multiplier, y, scratch);
}
