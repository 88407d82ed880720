#include "qsoftmax.h"

BT_INLINE int32_t bt_qsoftmax_max(const int8_t *x, int32_t length)
{
    int32_t max = x[0];
    for (int32_t i = 1; i < length; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

BT_INLINE uint32_t bt_qsoftmax_sum(const int8_t *x, int32_t length, int32_t max, const BT_FLASH int16_t *table)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < length; i++)
        sum += (uint16_t)table[max - x[i]];
    return sum;
}

BT_KERNEL void bt_qsoftmax_ref(const bt_qsoftmax *p, const int8_t *x, const BT_FLASH int16_t *table, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const int32_t max = bt_qsoftmax_max(x, p->length);
        const uint32_t inverse = 0xffffffffu / bt_qsoftmax_sum(x, p->length, max, table);
        for (int32_t i = 0; i < p->length; i++) {
            const uint32_t share = ((((uint16_t)table[max - x[i]] * inverse) >> 23) + 1) >> 1;
            y[i] = (int8_t)((int32_t)(share < 255 ? share : 255) - 128);
        }
    }
}

/* ln(sum / 65535) in steps of 2^-20, sum above 0: 726817 of them are ln 2, 11629055 are ln 65535 by this very method, so
 * that a certain answer has a logarithm of exactly 0. */
BT_INLINE int32_t bt_qsoftmax_log(uint32_t sum, const BT_FLASH int16_t *logs)
{
    int32_t power = 31;
    for (; sum >> 31 == 0; sum <<= 1)
        power--;
    const int32_t first = (uint16_t)logs[sum >> 23 & 255], next = (uint16_t)logs[(sum >> 23 & 255) + 1];
    const int32_t rest = (int32_t)(sum >> 8 & 0x7fff);
    return power * 726817 + ((first + ((next - first) * rest >> 15)) << 4) - 11629055;
}

BT_KERNEL void bt_qlog_softmax_ref(const bt_qlog_softmax *p, const int8_t *x, const BT_FLASH int16_t *table,
                                   const BT_FLASH int16_t *logs, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const int32_t max = bt_qsoftmax_max(x, p->length);
        const int32_t log = bt_qsoftmax_log(bt_qsoftmax_sum(x, p->length, max, table), logs);
        for (int32_t i = 0; i < p->length; i++)
            y[i] = bt_requantize((x[i] - max) * p->scale - log, p->multiplier, p->shift, p->zero, -128, 127);
    }
}
