/* Resampling by tables: output (h, w) is made of the inputs at rows[h] and columns[w].
 *
 * Nearest: y[n, h, w] = x[n, rows[h], columns[w]].
 * Bilinear: a pixel between (rows[h], columns[w]) and its next neighbours, of which down[h] and right[w] say how much
 * they count, from 0 to 1. At an image's end a pixel is its own neighbour. */
#ifndef BT_UPSAMPLE_H
#define BT_UPSAMPLE_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w;
    int32_t pixel; /* bytes: all channels of one place */
    int32_t out_h, out_w;
} bt_upsample_nearest2d;

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
} bt_upsample_bilinear2d_f32;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][channels], y: [batch][out_h][out_w][channels] */
void bt_upsample_nearest2d_ref(const bt_upsample_nearest2d *p, const void *x, const BT_FLASH int16_t *rows,
                               const BT_FLASH int16_t *columns, void *y);
void bt_upsample_bilinear2d_f32_ref(const bt_upsample_bilinear2d_f32 *p, const float *x, const BT_FLASH int16_t *rows,
                                    const BT_FLASH float *down, const BT_FLASH int16_t *columns,
                                    const BT_FLASH float *right, float *y);
#endif

#endif
