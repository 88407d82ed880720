/* y[r, i] = softmax of row r, with scale 1/256 and zero point -128
 *
 * table[d], taken as unsigned, is e^-d in the input's scale times 65535. Rows have 65536 numbers at most, so a sum stays
 * below 2^32; it is no less than any of its parts, so that every product below fits into 32 bits. */
#ifndef BT_QSOFTMAX_H
#define BT_QSOFTMAX_H

#include "../int8.h"

typedef struct {
    int32_t rows;
    int32_t length;
} bt_qsoftmax;

/* The logarithm of that: requantize(-(max - x[r, i]) * scale - ln(sum / 65535)), in steps of 2^-20. logs[i], taken as
 * unsigned, is ln(1 + i / 256) in steps of 2^-16, for i up to 256. */
typedef struct {
    int32_t rows;
    int32_t length;
    int32_t scale;
    int32_t multiplier, shift, zero;
} bt_qlog_softmax;

#ifndef BT_INLINE_KERNELS
/* x and y may be the same. */
void bt_qsoftmax_ref(const bt_qsoftmax *p, const int8_t *x, const BT_FLASH int16_t *table, int8_t *y);
void bt_qlog_softmax_ref(const bt_qlog_softmax *p, const int8_t *x, const BT_FLASH int16_t *table,
                         const BT_FLASH int16_t *logs, int8_t *y);
#endif

#endif
