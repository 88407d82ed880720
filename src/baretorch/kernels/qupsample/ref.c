#include "qupsample.h"

BT_KERNEL void bt_qupsample_bilinear2d_ref(const bt_qupsample_bilinear2d *p, const int8_t *x,
                                           const BT_FLASH int16_t *rows, const BT_FLASH int16_t *down,
                                           const BT_FLASH int16_t *columns, const BT_FLASH int16_t *right, int8_t *y)
{
    const int32_t line = p->in_w * p->channels;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * line) {
        for (int32_t h = 0; h < p->out_h; h++) {
            const int32_t below = rows[h] + 1 < p->in_h ? line : 0;
            const int32_t b = down[h], t = 2048 - b;
            for (int32_t w = 0; w < p->out_w; w++) {
                const int32_t beside = columns[w] + 1 < p->in_w ? p->channels : 0;
                const int8_t *v = x + rows[h] * line + columns[w] * p->channels;
                const int32_t r = right[w], l = 2048 - r;
                for (int32_t c = 0; c < p->channels; c++, v++) {
                    const int32_t above = l * v[0] + r * v[beside];
                    const int32_t under = l * v[below] + r * v[below + beside];
                    *y++ = (int8_t)((t * above + b * under + (INT32_C(1) << 21)) >> 22);
                }
            }
        }
    }
}
