#include "layers.h"

BT_INLINE int32_t bt_qrecurrent_dot_ref(const int8_t *a, const int8_t *b, int32_t count, int32_t sum)
{
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

BT_QRECURRENT_KERNELS(ref, bt_qrecurrent_dot_ref)
