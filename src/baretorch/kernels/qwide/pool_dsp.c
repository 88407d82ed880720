/* Pools of int16 for cores with the DSP extension (Cortex-M4, M7, M33): two channels at a time. On a Cortex-M4F the
 * largest of 2x2 windows, 8x8 of 16 channels, takes 8,630 instructions (ref.c: 35,887), the average 4x4 of 16 channels
 * 4,544 (8,963). */
#include "../dsp.h"
#include "walk.h"

BT_INLINE int32_t bt_load2(const int16_t *x)
{
    int32_t pair;
    __builtin_memcpy(&pair, x, 4);
    return pair;
}

BT_INLINE void bt_qmax16_each_dsp(const bt_qmax_pool2d *p, const bt_qwindow16 *w, int16_t *y)
{
    (void)p;
    int32_t c = 0;
    for (; c < (w->channels & ~1); c += 2) {
        int32_t max = (int32_t)0x80008000u;
        const int16_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int16_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                max = bt_larger_halves(max, bt_load2(at));
        }
        __builtin_memcpy(y + c, &max, 4);
    }
    if (w->channels & 1) {
        int32_t max = -32768;
        for (int32_t i = 0; i < w->rows; i++)
            for (int32_t j = 0; j < w->columns; j++) {
                const int32_t v = w->x[i * w->row_step + j * w->channels + c];
                max = v > max ? v : max;
            }
        y[c] = (int16_t)max;
    }
}

BT_INLINE void bt_qavg16_each_dsp(const bt_qavg_pool2d *p, const bt_qwindow16 *w, int16_t *y)
{
    int32_t c = 0;
    for (; c < (w->channels & ~1); c += 2) {
        int32_t low = 0, high = 0;
        const int16_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int16_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels) {
                const int32_t pair = bt_load2(at);
                low += (int16_t)pair;
                high += pair >> 16;
            }
        }
        y[c] = bt_qavg16_one(p, low);
        y[c + 1] = bt_qavg16_one(p, high);
    }
    if (w->channels & 1) {
        int32_t sum = 0;
        for (int32_t i = 0; i < w->rows; i++)
            for (int32_t j = 0; j < w->columns; j++)
                sum += w->x[i * w->row_step + j * w->channels + c];
        y[c] = bt_qavg16_one(p, sum);
    }
}

BT_QPOOL16(bt_qmax_pool16_dsp, bt_qmax_pool2d, bt_qmax16_each_dsp)
BT_QPOOL16(bt_qavg_pool16_dsp, bt_qavg_pool2d, bt_qavg16_each_dsp)
