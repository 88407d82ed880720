/* conv2d for Arm cores with a single-precision FPU.
 *
 * A row of the output is cut into runs of pixels whose windows meet the padding in the same way: one pixel at a time
 * at the left and right edge, all that are whole in between. A layer's parameters are not worth an instance of their
 * own: nearly all time is spent in the sums. */
#include "conv2d.h"

#include "../fpu.h"

/* The outputs of some windows side by side: bt_fpu_dense, bt_fpu_depthwise */
typedef void bt_conv2d_fpu_sums(const bt_fpu_windows *s, const float *x, const float *weight, const float *bias,
                                float *y, int32_t count);

/* y[count][out]: pixels [from, from + count) of row `h` of the convolution, before pool and limits.
 * `depth` is the number of input channels that an output reads. */
BT_INLINE void bt_conv2d_fpu_row(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y, int32_t h, int32_t from, int32_t count, int32_t depth,
                                 bt_conv2d_fpu_sums sums)
{
    int32_t top = h * p->stride_h - p->pad_top;
    int32_t above = top < 0 ? (p->dilation_h - 1 - top) / p->dilation_h : 0;
    int32_t below = (p->in_h - top + p->dilation_h - 1) / p->dilation_h;
    int32_t line = p->in_w * p->in;
    bt_fpu_windows s = {.x_next = p->stride_w * p->in, .weights = p->kernel_h * p->kernel_w * depth, .out = p->out};
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
        } else
            for (int32_t o = 0; o < p->out; o++)
                y[o] = bias[o];
    }
}

BT_SHARED void bt_conv2d_fpu_dense_row(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                       float *y, int32_t h, int32_t from, int32_t count)
{
    bt_conv2d_fpu_row(p, x, weight, bias, y, h, from, count, p->in, bt_fpu_dense);
}

BT_SHARED void bt_conv2d_fpu_depthwise(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                       float *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            bt_conv2d_fpu_row(p, x, weight, bias, y, h, 0, p->out_w, 1, bt_fpu_depthwise);
            bt_fpu_limit(y, p->out_w * p->out, p->lo, p->hi);
        }
    }
}

BT_SHARED void bt_conv2d_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias, float *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            bt_conv2d_fpu_dense_row(p, x, weight, bias, y, h, 0, p->out_w);
            bt_fpu_limit(y, p->out_w * p->out, p->lo, p->hi);
        }
    }
}

BT_SHARED void bt_conv2d_pool_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                  float *y, float *sums)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += p->out) {
                for (int32_t row = 0; row < p->pool_h; row++)
                    bt_conv2d_fpu_dense_row(p, x, weight, bias, sums + row * p->pool_w * p->out, h * p->pool_h + row,
                                            w * p->pool_w, p->pool_w);
                for (int32_t o = 0; o < p->out; o++) {
                    float max = sums[o];
                    for (int32_t k = 1; k < p->pool_h * p->pool_w; k++)
                        max = bt_max_f32(max, sums[k * p->out + o]);
                    y[o] = max;
                }
                bt_fpu_limit(y, p->out, p->lo, p->hi);
            }
        }
    }
}

BT_KERNEL void bt_conv2d_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y)
{
    bt_conv2d_fpu(p, x, weight, bias, y);
}

BT_KERNEL void bt_conv2d_pool_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight, const float *bias,
                                      float *y, void *scratch)
{
    bt_conv2d_pool_fpu(p, x, weight, bias, y, scratch);
}

BT_KERNEL void bt_conv2d_depthwise_f32_fpu(const bt_conv2d_f32 *p, const float *x, const float *weight,
                                           const float *bias, float *y)
{
    bt_conv2d_fpu_depthwise(p, x, weight, bias, y);
}
