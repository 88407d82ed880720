/* qconv2d, one group, for CV32E40P.
 *
 * Windows of one pixel are read where they are. Others are brought to scratch, each as one run of words; so padding is
 * written once, words are aligned, and pixels that follow each other can be written over the input. Of windows that are
 * pooled the outputs are brought there too. Four windows are made at a time: 2.7 products per cycle in the inner loop. */
#include "../xcv.h"
#include "qconv2d.h"

BT_INLINE bt_xcv_layer bt_qconv2d_layer_xcv(const bt_qconv2d *p, const int32_t *constants, int narrow)
{
    const bt_xcv_layer layer = { (p->kernel_h * p->kernel_w * p->in + 3) >> 2, p->out,
                                 bt_xcv_rule_of(narrow, p->shift, p->zero, p->lo, p->hi), constants };
    return layer;
}

BT_INLINE void bt_qconv2d_each_pixel_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                         int32_t y_stride, int narrow)
{
    const bt_xcv_layer layer = bt_qconv2d_layer_xcv(p, constants, narrow);
    bt_xcv_windows windows = { .count = 0 };
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++, y += y_stride)
                bt_xcv_add(&layer, &windows, x + (h * p->stride_h * p->in_w + w * p->stride_w) * p->in, y);
    bt_xcv_make(&layer, &windows);
}

BT_XCV_BRING(bt_qconv2d_window_xcv, bt_qconv2d, in)

/* y[0..n) = the largest of `count` rows, which are words apart */
BT_INLINE void bt_qconv2d_largest_xcv(const int8_t *rows, int32_t count, int32_t n, int8_t *y)
{
    const int32_t step = (n + 3) & ~3;
    for (int32_t o = 0; o < n; o += 4) {
        int32_t largest = bt_xcv_word(rows + o);
        for (int32_t i = 1; i < count; i++)
            largest = bt_xcv_max4(largest, bt_xcv_word(rows + i * step + o));
        for (int32_t i = 0; i < 4 && o + i < n; i++, largest >>= 8)
            y[o + i] = (int8_t)largest;
    }
}

BT_INLINE void bt_qconv2d_each_window_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                          int32_t y_stride, int8_t *scratch, int narrow)
{
    const bt_xcv_layer layer = bt_qconv2d_layer_xcv(p, constants, narrow);
    const int32_t pooled = p->pool_h * p->pool_w, row = (p->out + 3) & ~3;
    int8_t *const rows = scratch + 16 * layer.words;
    bt_xcv_windows windows = { .count = 0 };
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += y_stride) {
                for (int32_t i = 0; i < pooled; i++) {
                    const int32_t at_h = h * p->pool_h + i / p->pool_w, at_w = w * p->pool_w + i % p->pool_w;
                    int8_t *const window = scratch + 4 * layer.words * windows.count;
                    bt_qconv2d_window_xcv(p, x, at_h * p->stride_h - p->pad_top, at_w * p->stride_w - p->pad_left,
                                          window);
                    bt_xcv_add(&layer, &windows, window, pooled == 1 ? y : rows + i * row);
                }
                if (pooled != 1) {
                    bt_xcv_make(&layer, &windows);
                    bt_qconv2d_largest_xcv(rows, pooled, p->out, y);
                }
            }
        }
    }
    bt_xcv_make(&layer, &windows);
}

BT_KERNEL void bt_qconv2d_pixels_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y)
{
    bt_qconv2d_each_pixel_xcv(p, x, constants, y, p->out, 0);
}

BT_KERNEL void bt_qconv2d_pixels_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y)
{
    bt_qconv2d_each_pixel_xcv(p, x, constants, y, p->out, 1);
}

BT_KERNEL void bt_qconv2d_pixels_channels_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants,
                                              int8_t *y)
{
    bt_qconv2d_each_pixel_xcv(&p->layer, x, constants, y, p->y_stride, 0);
}

BT_KERNEL void bt_qconv2d_pixels_channels_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x,
                                                     const int32_t *constants, int8_t *y)
{
    bt_qconv2d_each_pixel_xcv(&p->layer, x, constants, y, p->y_stride, 1);
}

/* scratch: four windows, each rounded up to words, and the outputs of a pool's windows, each rounded up to words */
BT_KERNEL void bt_qconv2d_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch)
{
    bt_qconv2d_each_window_xcv(p, x, constants, y, p->out, (int8_t *)scratch, 0);
}

BT_KERNEL void bt_qconv2d_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     void *scratch)
{
    bt_qconv2d_each_window_xcv(p, x, constants, y, p->out, (int8_t *)scratch, 1);
}

BT_KERNEL void bt_qconv2d_channels_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants,
                                       int8_t *y, void *scratch)
{
    bt_qconv2d_each_window_xcv(&p->layer, x, constants, y, p->y_stride, (int8_t *)scratch, 0);
}

BT_KERNEL void bt_qconv2d_channels_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants,
                                              int8_t *y, void *scratch)
{
    bt_qconv2d_each_window_xcv(&p->layer, x, constants, y, p->y_stride, (int8_t *)scratch, 1);
}
