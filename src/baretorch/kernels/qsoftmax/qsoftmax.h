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

#ifndef BT_INLINE_KERNELS
/* x and y may be the same. */
void bt_qsoftmax_ref(const bt_qsoftmax *p, const int8_t *x, const int16_t *table, int8_t *y);
#endif

#endif
