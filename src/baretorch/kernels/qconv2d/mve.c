/* qconv2d, one group, for Arm cores with Helium.
 *
 * What a row of outputs reads is brought to scratch as [column][kernel_h][in]: there every window is one run of bytes,
 * and padding is written once. With dilation, outputs that are dilation_w apart share columns, and form such rows. */
#include "../int8_mve.h"
#include "qconv2d.h"

/* n bytes, 16 at most, to each of `count` places that are `step` apart: from `from` and places `from_step` apart. */
#define BT_QCONV2D_PUT(store)                                                                                          \
    __asm__ volatile("vctp.8 %[n]\n\t"                                                                                 \
                     "wls lr, %[count], 2f\n"                                                                          \
                     "1:\n\t"                                                                                          \
                     "vpstt\n\t"                                                                                       \
                     "vldrbt.u8 %q[v], [%[from]]\n\t" store "add %[from], %[from], %[from_step]\n\t"                   \
                     "add %[to], %[to], %[step]\n\t"                                                                   \
                     "le lr, 1b\n"                                                                                     \
                     "2:"                                                                                              \
                     : [to] "+&r"(to), [from] "+&r"(from), [v] "=&w"(v)                                                \
                     : [step] "r"(step), [from_step] "r"(from_step), [n] "r"(n), [count] "r"(count), [at] "w"(at)      \
                     : "lr", "cc", "memory")

BT_INLINE void bt_qconv2d_put(int8_t *to, int32_t step, const int8_t *from, int32_t from_step, int32_t n, int32_t count)
{
    int8x16_t v, at = vdupq_n_s8(0);
    BT_QCONV2D_PUT("vstrbt.8 %q[v], [%[to]]\n\t");
}

/* The same, byte i to at[i]. */
BT_INLINE void bt_qconv2d_scatter(int8_t *to, int32_t step, const int8_t *from, int32_t from_step, int32_t n,
                                  int32_t count, uint8x16_t at)
{
    int8x16_t v;
    BT_QCONV2D_PUT("vstrbt.8 %q[v], [%[to], %q[at]]\n\t");
}

/* `columns` columns to scratch, dilation_w apart, the first at (top, left), which may be outside of the image; but not
 * those outside of the image, which bt_qconv2d_padding_mve writes. Of a few channels some pixels go at once. */
BT_SHARED void bt_qconv2d_columns_mve(const bt_qconv2d *p, const int8_t *x, int32_t top, int32_t left, int32_t columns,
                                      int8_t *to)
{
    const int32_t in = p->in, step = p->kernel_h * in, d = p->dilation_w;
    const int32_t before = bt_clamp_i32((d - 1 - left) / d, 0, columns); /* columns left of the image */
    const int32_t inside = bt_clamp_i32((p->in_w - 1 - left + d) / d, before, columns) - before;
    const int32_t fit = d == 1 && in < 16 && 16 / in * step <= 256 ? 16 / in : 1;
    const int32_t together = fit < inside ? fit : inside > 1 ? inside : 1;
    const int32_t bytes = together * in, most = inside / together, rest = inside - most * together;
    const int32_t row = p->dilation_h * p->in_w * in;
    const uint8x16_t i = vidupq_n_u8(0, 1);
    uint8x16_t at = i; /* where bytes of pixels go */
    int8_t outside[16];
    vst1q_s8(outside, vdupq_n_s8((int8_t)p->x_zero));
    for (int32_t k = in; k < bytes; k += in)
        at = vaddq_m_n_u8(at, at, (uint8_t)(step - in), vcmpcsq_n_u8(i, (uint8_t)k));
    x += (top * p->in_w + left + before * d) * in;
    to += before * step;
    for (int32_t kh = 0, h = top; kh < p->kernel_h; kh++, h += p->dilation_h, x += row, to += in) {
        const int there = h >= 0 && h < p->in_h;
        const int8_t *const from = there ? x : outside;
        if (together > 1) {
            const int32_t next = there ? bytes : 0;
            bt_qconv2d_scatter(to, together * step, from, next, bytes, most, at);
            if (rest)
                bt_qconv2d_scatter(to + most * together * step, 0, from + most * next, 0, rest * in, 1, at);
        } else
            for (int32_t c = 0; c < in; c += 16)
                bt_qconv2d_put(to + c, step, there ? from + c : outside, there ? d * in : 0, in - c, inside);
    }
}

/* The bytes that stay as they are while rows of outputs are made. */
BT_INLINE void bt_qconv2d_padding_mve(const bt_qconv2d *p, int32_t columns, int8_t *scratch)
{
    bt_mve_fill(scratch, p->x_zero, columns * p->kernel_h * p->in);
}

/* A row of the convolution, of `width` positions. */
BT_INLINE void bt_qconv2d_row_mve(const bt_qconv2d *p, const bt_mve_layer *layer, const int8_t *x, int32_t h,
                                  int32_t width, int8_t *y, int8_t *scratch)
{
    const int32_t column = p->kernel_h * p->in;
    for (int32_t first = 0; first < p->dilation_w && first < width; first++) {
        const int32_t count = (width - first + p->dilation_w - 1) / p->dilation_w;
        const int32_t columns = (count - 1) * p->stride_w + p->kernel_w;
        if (h == 0 || p->dilation_w > 1)
            bt_qconv2d_padding_mve(p, columns, scratch);
        bt_qconv2d_columns_mve(p, x, h * p->stride_h - p->pad_top, first - p->pad_left, columns, scratch);
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
    const int32_t step = p->stride_w * p->kernel_h * p->in, row = p->out_w * p->out;
    const int twos = p->out_w % 2 == 1 && p->dilation_w == 1 && row <= BT_MVE_FAR; /* a window and that below it */
    const int32_t columns = (p->out_w - 1) * p->stride_w + p->kernel_w;
    int8_t *const second = scratch + columns * p->kernel_h * p->in;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int32_t h = 0;
        if (twos && p->out_h > 1)
            bt_qconv2d_padding_mve(p, 2 * columns, scratch);
        for (; twos && h + 1 < p->out_h; h += 2, y += 2 * row) {
            for (int32_t i = 0; i < 2; i++)
                bt_qconv2d_columns_mve(p, x, (h + i) * p->stride_h - p->pad_top, -p->pad_left, columns,
                                       i ? second : scratch);
            const bt_mve_pairs pairs = { scratch, second, step, y, row, p->out, p->out_w };
            bt_mve_outputs(&layer, &pairs);
        }
        for (; h < p->out_h; h++, y += row)
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

/* The largest result of the convolution: requantizing keeps the order. */
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

/* scratch: the columns that a row of outputs reads, or two of an odd width, or every dilation_w-th of them; and 16
 * bytes after windows of less than 16 */
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

/* scratch: as bt_mve_rows */
BT_KERNEL void bt_qconv2d_pixels_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     void *scratch)
{
    const bt_mve_layer layer = bt_qconv2d_layer(p, constants);
    const int32_t pixels = p->batch * p->in_h * p->in_w;
    bt_mve_rows(&layer, x, y, pixels, (int8_t *)scratch);
    bt_mve_limit_i8(y, pixels * p->out, p->lo, p->hi);
}
