/* Images sampled between their pixels: bicubic resampling by tables, and sampling at places that are computed. */
#ifndef BT_SAMPLE_H
#define BT_SAMPLE_H

#include "../bt.h"

/* y[n, h, w] = sum over i, j < 4 of down[h][i] across[w][j] x[n, rows[h][i], columns[w][j]] */
typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
} bt_upsample_bicubic2d_f32;

/* y[n, h, w] = x[n] at (grid[n, h, w, 1], grid[n, h, w, 0]), where the image reaches from -1 to 1 each way. */
typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t padding; /* pixels outside: 0 is 0, 1 the nearest pixel, 2 the image mirrored */
    int32_t corners; /* 1: the middles of the outer pixels are at -1 and 1; 0: their outer borders are */
} bt_grid_sample2d_f32;

#ifndef BT_INLINE_KERNELS
void bt_upsample_bicubic2d_f32_ref(const bt_upsample_bicubic2d_f32 *p, const float *x, const BT_FLASH int16_t *rows,
                                   const BT_FLASH float *down, const BT_FLASH int16_t *columns,
                                   const BT_FLASH float *across, float *y);
void bt_grid_sample2d_bilinear_f32_ref(const bt_grid_sample2d_f32 *p, const float *x, const float *grid, float *y);
void bt_grid_sample2d_nearest_f32_ref(const bt_grid_sample2d_f32 *p, const float *x, const float *grid, float *y);
void bt_grid_sample2d_bicubic_f32_ref(const bt_grid_sample2d_f32 *p, const float *x, const float *grid, float *y);
#endif

#endif
