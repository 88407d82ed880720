/* conv2d row by row, for any core that can compute the sums of windows.
 *
 * A row of the output is cut into runs of pixels whose windows meet the padding in the same way: one pixel at a time
 * at the left and right edge, and where windows are entirely in padding; all that are whole in between. A layer's
 * parameters are not worth an instance of this code: nearly all time is spent in the sums. */
#ifndef BT_CONV2D_ROWS_H
#define BT_CONV2D_ROWS_H

#include "../windows.h"
#include "conv2d.h"

/* y[count][out]: pixels [from, from + count) of row `h` of the convolution, before pool and limits.
 * `depth` is the number of input channels that an output reads. */
BT_INLINE void bt_conv2d_row(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y, int32_t h, int32_t from, int32_t count, int32_t depth,
                                 bt_sums sums)
{
    int32_t top = h * p->stride_h - p->pad_top;
    int32_t above = top < 0 ? (p->dilation_h - 1 - top) / p->dilation_h : 0;
    int32_t below = (p->in_h - top + p->dilation_h - 1) / p->dilation_h;
    int32_t line = p->in_w * p->in;
    bt_windows s = {.x_next = p->stride_w * p->in, .weights = p->kernel_h * p->kernel_w * depth, .out = p->out};
    s.rows = (below < p->kernel_h ? below : p->kernel_h) - above;
    x += (top + above * p->dilation_h) * line;
    for (int32_t end = from + count; from < end; from += count, y += count * p->out) {
        int32_t left = from * p->stride_w - p->pad_left;
        int32_t before = left < 0 ? -left : 0;
        int32_t whole = p->in_w - p->kernel_w - left; /* how far a whole window may move to the right */
        int32_t taps = (whole < 0 ? p->kernel_w + whole : p->kernel_w) - before;
        count = 1;
        if (taps == p->kernel_w) {
            count = whole / p->stride_w + 1;
            count = count < end - from ? count : end - from;
        }
        if (s.rows > 0 && taps > 0) {
            s.inputs = taps * depth;
            s.x_step = p->dilation_h * line - taps * p->in;
            s.w_step = (p->kernel_w - taps) * depth;
            s.w_next = (p->kernel_h - s.rows) * p->kernel_w * depth;
            s.skipped = (above * p->kernel_w + before) * depth;
            sums(&s, x + (left + before) * p->in, weight, bias, y, count);
        } else {
            count = 1; /* also where a run of windows would be whole */
            for (int32_t o = 0; o < p->out; o++)
                y[o] = bias[o];
        }
    }
}

/* Without a pool. */
BT_INLINE void bt_conv2d_rows(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y,
                              int32_t depth, bt_sums sums, bt_limit limit)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            bt_conv2d_row(p, x, weight, bias, y, h, 0, p->out_w, depth, sums);
            limit(y, p->out_w * p->out, p->lo, p->hi);
        }
    }
}

/* A pointwise convolution from the last pixels to the first, `together` at a time; all are in one row. */
BT_INLINE void bt_conv2d_back(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y,
                              int32_t together, bt_sums sums, bt_limit limit)
{
    const bt_windows s = {.rows = 1, .inputs = p->in, .x_next = p->in, .weights = p->in, .out = p->out};
    for (int32_t at = p->out_w, count; at > 0;) {
        count = (at - 1) % together + 1;
        at -= count;
        sums(&s, x + at * p->in, weight, bias, y + at * p->out, count);
        limit(y + at * p->out, count * p->out, p->lo, p->hi);
    }
}

/* Some channels of a wider tensor, pixel by pixel; without a pool. */
BT_INLINE void bt_conv2d_channels(const bt_conv2d_channels_f32 *c, const float *x, const float *weight,
                                  const float *bias, float *y, bt_sums sums, bt_limit limit)
{
    const bt_conv2d_f32 *const p = &c->layer;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += c->y_stride) {
                bt_conv2d_row(p, x, weight, bias, y, h, w, 1, p->in, sums);
                limit(y, p->out, p->lo, p->hi);
            }
        }
    }
}

/* With a pool: the pixels of one of its windows go to `part`, [pool_h][pool_w][out].
 * A ReLU comes before the maximum, since positive numbers are easier to compare. */
BT_INLINE void bt_conv2d_pool(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y,
                              float *part, bt_sums sums, bt_limit limit, bt_larger larger)
{
    bool relu = p->lo == 0.0f && p->hi == BT_INF;
    int32_t pixels = p->pool_h * p->pool_w;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += p->out) {
                for (int32_t row = 0; row < p->pool_h; row++)
                    bt_conv2d_row(p, x, weight, bias, part + row * p->pool_w * p->out, h * p->pool_h + row,
                                  w * p->pool_w, p->pool_w, p->in, sums);
                if (relu)
                    limit(part, pixels * p->out, p->lo, p->hi);
                for (int32_t k = 1; k < pixels; k++)
                    larger(y, k == 1 ? part : y, part + k * p->out, p->out, relu);
                if (!relu)
                    limit(y, p->out, p->lo, p->hi);
            }
        }
    }
}

/* The kernels of a CPU whose functions are called bt_`cpu`_dense and so on. Layers share all but the parameters. */
#define BT_CONV2D_KERNELS(cpu)                                                                                         \
    BT_SHARED void bt_conv2d_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,     \
                                   float *y)                                                                           \
    {                                                                                                                  \
        bt_conv2d_rows(p, x, weight, bias, y, p->in, bt_##cpu##_dense, bt_##cpu##_limit);                              \
    }                                                                                                                  \
    BT_SHARED void bt_conv2d_back_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,                   \
                                        const float *bias, float *y)                                                   \
    {                                                                                                                  \
        bt_conv2d_back(p, x, weight, bias, y, 2, bt_##cpu##_dense, bt_##cpu##_limit);                                  \
    }                                                                                                                  \
    BT_SHARED void bt_conv2d_pool_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,                   \
                                        const float *bias, float *y, float *part)                                      \
    {                                                                                                                  \
        bt_conv2d_pool(p, x, weight, bias, y, part, bt_##cpu##_dense, bt_##cpu##_limit, bt_##cpu##_larger);            \
    }                                                                                                                  \
    BT_SHARED void bt_conv2d_depthwise_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,              \
                                             const float *bias, float *y)                                              \
    {                                                                                                                  \
        bt_conv2d_rows(p, x, weight, bias, y, 1, bt_##cpu##_depthwise, bt_##cpu##_limit);                              \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,                    \
                                       const float *bias, float *y)                                                    \
    {                                                                                                                  \
        bt_conv2d_##cpu(p, x, weight, bias, y);                                                                        \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_back_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,               \
                                            const float *bias, float *y)                                               \
    {                                                                                                                  \
        bt_conv2d_back_##cpu(p, x, weight, bias, y);                                                                   \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_pool_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,               \
                                            const float *bias, float *y, void *scratch)                                \
    {                                                                                                                  \
        bt_conv2d_pool_##cpu(p, x, weight, bias, y, (float *)scratch);                                                 \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_depthwise_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const float *weight,          \
                                                 const float *bias, float *y)                                          \
    {                                                                                                                  \
        bt_conv2d_depthwise_##cpu(p, x, weight, bias, y);                                                              \
    }

/* The same with weights of 16 bits, by bt_half_`cpu`_dense and so on. */
#define BT_CONV2D_HALF_KERNELS(cpu)                                                                                    \
    BT_KERNEL void bt_conv2d_half_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight,             \
                                            const float *bias, float *y)                                               \
    {                                                                                                                  \
        bt_conv2d_rows(p, x, (const float *)(const void *)weight, bias, y, p->in, bt_half_##cpu##_dense,               \
                       bt_##cpu##_limit);                                                                              \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_pool_half_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight,        \
                                                 const float *bias, float *y, void *scratch)                           \
    {                                                                                                                  \
        bt_conv2d_pool(p, x, (const float *)(const void *)weight, bias, y, (float *)scratch, bt_half_##cpu##_dense,    \
                       bt_##cpu##_limit, bt_##cpu##_larger);                                                           \
    }                                                                                                                  \
    BT_KERNEL void bt_conv2d_depthwise_half_f32_##cpu(const bt_conv2d_f32 *p, const float *x, const int32_t *weight,   \
                                                      const float *bias, float *y)                                     \
    {                                                                                                                  \
        bt_conv2d_rows(p, x, (const float *)(const void *)weight, bias, y, 1, bt_half_##cpu##_depthwise,               \
                       bt_##cpu##_limit);                                                                              \
    }

#endif
