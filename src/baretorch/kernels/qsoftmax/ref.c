#include "qsoftmax.h"

BT_KERNEL void bt_qsoftmax_ref(const bt_qsoftmax *p, const int8_t *x, const int16_t *table, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        int32_t max = x[0];
        for (int32_t i = 1; i < p->length; i++)
            max = x[i] > max ? x[i] : max;
        uint32_t sum = 0;
        for (int32_t i = 0; i < p->length; i++)
            sum += (uint16_t)table[max - x[i]];
        const uint32_t inverse = 0xffffffffu / sum;
        for (int32_t i = 0; i < p->length; i++) {
            const uint32_t share = ((((uint16_t)table[max - x[i]] * inverse) >> 23) + 1) >> 1;
            y[i] = (int8_t)((int32_t)(share < 255 ? share : 255) - 128);
        }
    }
}
