#include "litert.h"

BT_INLINE const void *bt_qrecurrent_four_ref(int32_t sums[4], const int8_t *x, const void *w, int32_t count, int32_t n)
{
    const int8_t *row = (const int8_t *)w;
    for (int32_t k = 0; k < 4 && k < count; k++, row += n) {
        for (int32_t i = 0; i < n; i++)
            sums[k] += row[i] * x[i];
    }
    return row;
}

BT_QRECURRENT_KERNELS(ref, int8_t, bt_qrecurrent_four_ref)
BT_LITERT_LSTM(ref, int8_t, bt_qrecurrent_four_ref)
