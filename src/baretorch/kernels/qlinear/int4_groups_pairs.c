/* qlinear with weights of 4 bits in groups and an even number of inputs, for cores without DSP extension. */
#include "../int4_groups.h"
#include "../int4_pairs.h"

BT_INLINE const void *bt_int4_group_pairs(int32_t *sums, const int8_t *x, const void *w, int32_t n, int32_t start)
{
    sums[0] = sums[1] = sums[2] = sums[3] = start;
    return bt_int4_pairs_four(sums, x, (const uint32_t *)w, n >> 1);
}

BT_KERNEL void bt_qlinear4_groups_pairs(const bt_qlinear *p, const int8_t *x, const int32_t *weight,
                                        const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                        int8_t *y, void *scratch)
{
    bt_int4_groups(bt_int4_group_pairs, bt_int4_sum_ref, 4, p, x, weight, factors, bias, multiplier, y,
                   (int32_t *)scratch);
}
