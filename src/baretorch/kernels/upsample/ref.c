#include "upsample.h"

BT_KERNEL void bt_upsample_nearest2d_ref(const bt_upsample_nearest2d *p, const void *x, const BT_FLASH int16_t *rows,
                                         const BT_FLASH int16_t *columns, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t n = 0; n < p->batch; n++, from += p->in_h * p->in_w * p->pixel)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++, to += p->pixel)
                __builtin_memcpy(to, from + (rows[h] * p->in_w + columns[w]) * p->pixel, (size_t)p->pixel);
}

/* From `at` to the next place along an axis of `in` places; 0 where there is none, or where nothing is resampled. */
BT_INLINE int32_t bt_upsample_next(int32_t at, int32_t in, int32_t out, int32_t step)
{
    return in != out && at + 1 < in ? step : 0;
}

BT_KERNEL void bt_upsample_bilinear2d_f32_ref(const bt_upsample_bilinear2d_f32 *p, const float *x,
                                              const BT_FLASH int16_t *rows, const BT_FLASH float *down,
                                              const BT_FLASH int16_t *columns, const BT_FLASH float *right, float *y)
{
    int32_t line = p->in_w * p->channels;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * line) {
        for (int32_t h = 0; h < p->out_h; h++) {
            int32_t below = bt_upsample_next(rows[h], p->in_h, p->out_h, line);
            float b = down[h], t = 1.0f - b;
            for (int32_t w = 0; w < p->out_w; w++) {
                int32_t beside = bt_upsample_next(columns[w], p->in_w, p->out_w, p->channels);
                const float *v = x + rows[h] * line + columns[w] * p->channels;
                float r = right[w], l = 1.0f - r;
                for (int32_t c = 0; c < p->channels; c++, v++)
                    *y++ = t * (l * v[0] + r * v[beside]) + b * (l * v[below] + r * v[below + beside]);
            }
        }
    }
}
