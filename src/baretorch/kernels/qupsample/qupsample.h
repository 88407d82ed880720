/* y[n, h, w] is between the pixels (rows[h], columns[w]) of x and their next neighbours, of which down[h] and right[w]
 * say how many of 2048 parts they count. At an image's end a pixel is its own neighbour. */
#ifndef BT_QUPSAMPLE_H
#define BT_QUPSAMPLE_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
} bt_qupsample_bilinear2d;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][channels], y: [batch][out_h][out_w][channels] */
void bt_qupsample_bilinear2d_ref(const bt_qupsample_bilinear2d *p, const int8_t *x, const BT_FLASH int16_t *rows,
                                 const BT_FLASH int16_t *down, const BT_FLASH int16_t *columns,
                                 const BT_FLASH int16_t *right, int8_t *y);

/* Four channels at least. */
void bt_qupsample_bilinear2d_mve(const bt_qupsample_bilinear2d *p, const int8_t *x, const int16_t *rows,
                                 const int16_t *down, const int16_t *columns, const int16_t *right, int8_t *y);
#endif

#endif
