#include "litert.h"

#include "../dsp_rows.h"

BT_INLINE const BT_FLASH void *bt_qrecurrent_four_dsp(int32_t sums[4], const int8_t *x, const BT_FLASH void *w,
                                                      int32_t count, int32_t n)
{
    (void)count; /* rows that are not there are zeros */
    return bt_dsp_four(sums, x, (const int32_t *)w, n);
}

BT_LITERT_LSTM(dsp, int32_t, bt_qrecurrent_four_dsp)
