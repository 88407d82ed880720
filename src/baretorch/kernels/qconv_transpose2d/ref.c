#include "walk.h"

BT_INLINE int32_t bt_qconv_transpose2d_add_ref(int32_t sum, const int8_t *x, const BT_FLASH int8_t *weight,
                                               int32_t depth, int32_t zero)
{
    for (int32_t i = 0; i < depth; i++)
        sum += (x[i] - zero) * weight[i];
    return sum;
}

BT_KERNEL void bt_qconv_transpose2d_ref(const bt_qconv_transpose2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                                        const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y)
{
    bt_qconv_transpose2d_all(bt_qconv_transpose2d_add_ref, p, x, weight, bias, multiplier, y);
}
