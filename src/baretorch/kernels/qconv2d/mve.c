/* qconv2d, one group, for Arm cores with Helium.
 *
 * What a row of outputs reads is brought to scratch as [column][kernel_h][in]: there every window is one run of bytes,
 * and padding is written once. With dilation, outputs that are dilation_w apart share columns, and form such rows. */
#include "../int8_mve.h"
#include "qconv2d.h"

/* n bytes, 16 at most, to each of `count` places that are `step` apart: from `from` and places `from_step` apart. */
BT_INLINE void bt_qconv2d_put(int8_t *to, int32_t step, const int8_t *from, int32_t from_step, int32_t n, int32_t count)
{
    int8x16_t v;
    __asm__ volatile("vctp.8 %[n]\n\t"
                     "wls lr, %[count], 2f\n"
                     "1:\n\t"
                     "vpstt\n\t"
                     "vldrbt.u8 %q[v], [%[from]]\n\t"
                     "vstrbt.8 %q[v], [%[to]]\n\t"
                     "add %[from], %[from], %[from_step]\n\t"
                     "add %[to], %[to], %[step]\n\t"
                     "le lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+r"(from), [v] "=&w"(v)
                     : [step] "r"(step), [from_step] "r"(from_step), [n] "r"(n), [count] "r"(count)
                     : "lr", "cc", "memory");
}

/* `columns` columns to scratch, dilation_w apart, the first at (top, left), which may lie outside of the image. */
BT_SHARED void bt_qconv2d_columns_mve(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int32_t columns,
                                      int8_t *to)
{
    const int32_t step = p->kernel_h * p->in, d = p->dilation_w;
    const int32_t before = bt_clamp_i32((d - 1 - left) / d, 0, columns); /* columns left of the image */
    const int32_t end = bt_clamp_i32((p->in_w - 1 - left + d) / d, before, columns);
    int8_t outside[16];
    vst1q_s8(outside, vdupq_n_s8((int8_t)p->x_zero));
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = top + kh * p->dilation_h;
        const int rows = h >= 0 && h < p->in_h;
        const int32_t first = rows ? before : columns, last = rows ? end : columns;
        const int8_t *const from = x + (h * p->in_w + left + first * d) * p->in;
        for (int32_t c = 0; c < p->in; c += 16, to += 16) {
            bt_qconv2d_put(to, step, outside, 0, p->in - c, first);
            bt_qconv2d_put(to + first * step, step, from + c, d * p->in, p->in - c, last - first);
            bt_qconv2d_put(to + last * step, step, outside, 0, p->in - c, columns - last);
        }
        to += p->in - ((p->in + 15) & ~15);
    }
}

/* A row of the convolution, of `width` positions. */
BT_INLINE void bt_qconv2d_row_mve(const bt_qconv2d *p, const bt_mve_layer *layer, const int8_t *x, int32_t h,
                                  int32_t width, int8_t *y, int8_t *scratch)
{
    const int32_t column = p->kernel_h * p->in;
    for (int32_t first = 0; first < p->dilation_w && first < width; first++) {
        const int32_t count = (width - first + p->dilation_w - 1) / p->dilation_w;
        bt_qconv2d_columns_mve(p, x, h * p->stride_h - p->pad_top, first - p->pad_left,
                               (count - 1) * p->stride_w + p->kernel_w, scratch);
        bt_mve_windows(layer, scratch, p->stride_w * column, y + first * p->out, p->dilation_w * p->out, count);
    }
}

BT_INLINE bt_mve_layer bt_qconv2d_layer(const bt_qconv2d *p, const int32_t *constants)
{
    const bt_mve_layer layer = { p->kernel_h * p->kernel_w * p->in, p->out, p->zero, constants };
    return layer;
}

BT_SHARED void bt_qconv2d_shared_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     int8_t *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p, constants);
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out)
            bt_qconv2d_row_mve(p, &layer, x, h, p->out_w, y, scratch);
    }
}

/* y[0..count) = the largest of `pool` rows of `row`, and of y itself unless `first` */
BT_INLINE void bt_qconv2d_largest_mve(int8_t *y, const int8_t *row, int32_t pool, int32_t count, int first)
{
    for (int32_t i = 0; i < count; i += 16) {
        const mve_pred16_t inside = vctp8q((uint32_t)(count - i));
        int8x16_t v = vldrbq_z_s8(first ? row + i : y + i, inside);
        for (int32_t k = 0; k < pool; k++)
            v = vmaxq_s8(v, vldrbq_z_s8(row + k * count + i, inside));
        vstrbq_p_s8(y + i, v, inside);
    }
}

/* The largest of what the convolution would give: requantizing keeps the order. */
BT_SHARED void bt_qconv2d_pool_shared_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                          int8_t *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p, constants);
    const int32_t width = p->out_w * p->pool_w;
    int8_t *const row = scratch;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            for (int32_t i = 0; i < p->pool_h; i++) {
                bt_qconv2d_row_mve(p, &layer, x, h * p->pool_h + i, width, row, scratch + width * p->out);
                for (int32_t w = 0; w < p->out_w; w++)
                    bt_qconv2d_largest_mve(y + w * p->out, row + w * p->pool_w * p->out, p->pool_w, p->out, i == 0);
            }
        }
    }
}

/* scratch: the columns that a row of outputs reads, or every dilation_w-th of them */
BT_KERNEL void bt_qconv2d_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch)
{
    bt_qconv2d_shared_mve(p, x, constants, y, (int8_t *)scratch);
    bt_mve_limit_i8(y, p->batch * p->out_h * p->out_w * p->out, p->lo, p->hi);
}

/* scratch: the same, and before it a row of the convolution's outputs */
BT_KERNEL void bt_qconv2d_pool_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                   void *scratch)
{
    bt_qconv2d_pool_shared_mve(p, x, constants, y, (int8_t *)scratch);
    bt_mve_limit_i8(y, p->batch * p->out_h * p->out_w * p->out, p->lo, p->hi);
}

/* scratch: two pixels */
BT_KERNEL void bt_qconv2d_pixels_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     void *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p, constants);
    const int32_t pixels = p->batch * p->in_h * p->in_w;
    bt_mve_rows(&layer, x, y, pixels, (int8_t *)scratch);
    bt_mve_limit_i8(y, pixels * p->out, p->lo, p->hi);
}
