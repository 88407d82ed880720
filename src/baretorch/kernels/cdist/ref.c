#include "cdist.h"

#include "../math/log.h"

/* One more difference d >= 0 in the sum so far. */
BT_INLINE float bt_cdist_add_f32(float sum, float d, float order)
{
    if (order == 2.0f)
        return sum + d * d;
    if (order == 1.0f)
        return sum + d;
    if (order == BT_INF)
        return bt_max_f32(sum, d);
    if (order == 0.0f)
        return sum + (d != 0.0f ? 1.0f : 0.0f);
    return sum + bt_pow_f32(d, order);
}

BT_INLINE float bt_cdist_end_f32(float sum, float order)
{
    if (order == 2.0f)
        return bt_sqrt_f32(sum);
    if (order == 1.0f || order == 0.0f || order == BT_INF)
        return sum;
    return bt_pow_f32(sum, 1.0f / order);
}

BT_KERNEL void bt_cdist_f32_ref(const bt_cdist_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t n = 0; n < p->batch; n++, b += p->columns * p->length)
        for (int32_t i = 0; i < p->rows; i++, a += p->length)
            for (int32_t j = 0; j < p->columns; j++) {
                float sum = 0.0f;
                for (int32_t k = 0; k < p->length; k++)
                    sum = bt_cdist_add_f32(sum, bt_abs_f32(a[k] - b[j * p->length + k]), p->order);
                *y++ = bt_cdist_end_f32(sum, p->order);
            }
}
