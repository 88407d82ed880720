#include "pool.h"

#include <stdbool.h>

BT_KERNEL void bt_max_pool2d_f32_ref(const bt_max_pool2d_f32 *p, const float *x, float *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t c = 0; c < p->channels; c++) {
                    float max = -BT_INF;
                    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
                            int32_t ih = h * p->stride_h - p->pad_top + kh * p->dilation_h;
                            int32_t iw = w * p->stride_w - p->pad_left + kw * p->dilation_w;
                            if (ih >= 0 && ih < p->in_h && iw >= 0 && iw < p->in_w)
                                max = bt_max_f32(max, x[(ih * p->in_w + iw) * p->channels + c]);
                        }
                    }
                    *y++ = max;
                }
            }
        }
    }
}

/* Where a window begins and ends along one dimension. */
typedef struct {
    int32_t from, to; /* inside the input */
    int32_t padded;   /* its length with the padding; a window never reaches beyond that */
} bt_window;

BT_INLINE bt_window bt_window_at(int32_t start, int32_t kernel, int32_t size, int32_t pad_after)
{
    int32_t end = start + kernel < size + pad_after ? start + kernel : size + pad_after;
    return (bt_window){.from = start > 0 ? start : 0, .to = end < size ? end : size, .padded = end - start};
}

BT_KERNEL void bt_avg_pool2d_f32_ref(const bt_avg_pool2d_f32 *p, const float *x, float *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            bt_window rows = bt_window_at(h * p->stride_h - p->pad_top, p->kernel_h, p->in_h, p->pad_bottom);
            for (int32_t w = 0; w < p->out_w; w++) {
                bt_window cols = bt_window_at(w * p->stride_w - p->pad_left, p->kernel_w, p->in_w, p->pad_right);
                int32_t count = p->divisor             ? p->divisor
                                : p->count_include_pad ? rows.padded * cols.padded
                                                       : (rows.to - rows.from) * (cols.to - cols.from);
                bool empty = rows.from >= rows.to || cols.from >= cols.to; /* then the sum is 0, and so is y */
                float divisor = empty ? 1.0f : (float)count;
                for (int32_t c = 0; c < p->channels; c++) {
                    float sum = 0.0f;
                    for (int32_t ih = rows.from; ih < rows.to; ih++)
                        for (int32_t iw = cols.from; iw < cols.to; iw++)
                            sum += x[(ih * p->in_w + iw) * p->channels + c];
                    *y++ = sum / divisor;
                }
            }
        }
    }
}

/* Both adaptive pools; `average` is a literal. */
BT_INLINE void bt_adaptive_pool2d_f32_ref(const bt_adaptive_pool2d_f32 *p, const float *x, float *y, bool average)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            int32_t top = h * p->in_h / p->out_h, bottom = ((h + 1) * p->in_h + p->out_h - 1) / p->out_h;
            for (int32_t w = 0; w < p->out_w; w++) {
                int32_t left = w * p->in_w / p->out_w, right = ((w + 1) * p->in_w + p->out_w - 1) / p->out_w;
                float count = (float)((bottom - top) * (right - left));
                for (int32_t c = 0; c < p->channels; c++) {
                    float sum = 0.0f, max = -BT_INF;
                    for (int32_t ih = top; ih < bottom; ih++) {
                        for (int32_t iw = left; iw < right; iw++) {
                            float v = x[(ih * p->in_w + iw) * p->channels + c];
                            if (average)
                                sum += v;
                            else
                                max = bt_max_f32(max, v);
                        }
                    }
                    *y++ = average ? sum / count : max;
                }
            }
        }
    }
}

BT_KERNEL void bt_adaptive_max_pool2d_f32_ref(const bt_adaptive_pool2d_f32 *p, const float *x, float *y)
{
    bt_adaptive_pool2d_f32_ref(p, x, y, false);
}

BT_KERNEL void bt_adaptive_avg_pool2d_f32_ref(const bt_adaptive_pool2d_f32 *p, const float *x, float *y)
{
    bt_adaptive_pool2d_f32_ref(p, x, y, true);
}
