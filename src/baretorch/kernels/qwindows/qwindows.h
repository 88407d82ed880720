/* Pools whose windows differ in size: the window of y[n, h, w] reaches from (rows[h][0], columns[w][0]) to before
 * (rows[h][1], columns[w][1]) of x.
 *
 * qavg: requantize(sum of x - x_zero), with multiplier[h, w]
 * qmax: the largest x */
#ifndef BT_QWINDOWS_H
#define BT_QWINDOWS_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
    int32_t x_zero;
    int32_t shift, zero;
} bt_qavg_windows;

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, channels;
    int32_t out_h, out_w;
} bt_qmax_windows;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][channels], rows: [out_h][2], columns: [out_w][2], y: [batch][out_h][out_w][channels] */
void bt_qavg_windows_ref(const bt_qavg_windows *p, const int8_t *x, const BT_FLASH int16_t *rows,
                         const BT_FLASH int16_t *columns, const BT_FLASH int32_t *multiplier, int8_t *y);
void bt_qmax_windows_ref(const bt_qmax_windows *p, const int8_t *x, const BT_FLASH int16_t *rows,
                         const BT_FLASH int16_t *columns, int8_t *y);
#endif

#endif
