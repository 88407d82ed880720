#include "qwindows.h"

BT_KERNEL void bt_qavg_windows_ref(const bt_qavg_windows *p, const int8_t *x, const BT_FLASH int16_t *rows,
                                   const BT_FLASH int16_t *columns, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t c = 0; c < p->channels; c++) {
                    int32_t sum = 0;
                    for (int32_t i = rows[2 * h]; i < rows[2 * h + 1]; i++)
                        for (int32_t j = columns[2 * w]; j < columns[2 * w + 1]; j++)
                            sum += x[(i * p->in_w + j) * p->channels + c] - p->x_zero;
                    *y++ = bt_requantize(sum, multiplier[h * p->out_w + w], p->shift, p->zero, -128, 127);
                }
            }
        }
    }
}

BT_KERNEL void bt_qmax_windows_ref(const bt_qmax_windows *p, const int8_t *x, const BT_FLASH int16_t *rows,
                                   const BT_FLASH int16_t *columns, int8_t *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++) {
                for (int32_t c = 0; c < p->channels; c++) {
                    int8_t max = -128;
                    for (int32_t i = rows[2 * h]; i < rows[2 * h + 1]; i++) {
                        for (int32_t j = columns[2 * w]; j < columns[2 * w + 1]; j++) {
                            const int8_t v = x[(i * p->in_w + j) * p->channels + c];
                            max = v > max ? v : max;
                        }
                    }
                    *y++ = max;
                }
            }
        }
    }
}
