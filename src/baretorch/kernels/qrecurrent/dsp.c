#include "layers.h"

#include "../dsp.h"

BT_INLINE int32_t bt_qrecurrent_dot_dsp(const int8_t *a, const int8_t *b, int32_t count, int32_t sum)
{
    const int32_t fours = count & ~3;
    for (int32_t i = 0; i < fours; i += 4) {
        const int32_t v = bt_load4(a + i);
        const int32_t w = bt_load4(b + i);
        sum = bt_dual(bt_even_bytes(v), bt_even_bytes(w), sum);
        sum = bt_dual(bt_odd_bytes(v), bt_odd_bytes(w), sum);
    }
    for (int32_t i = fours; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

BT_QRECURRENT_KERNELS(dsp, bt_qrecurrent_dot_dsp)
