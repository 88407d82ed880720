/* qlinear with weights of 4 bits in groups, for Arm cores with Helium. */
#include "../int4_groups.h"
#include "../int4_mve.h"

BT_INLINE const void *bt_int4_group_mve(int32_t *sums, const int8_t *x, const void *w, int32_t n, int32_t start)
{
    sums[0] = sums[1] = start;
    bt_int4_two_mve(sums, x, (const uint8_t *)w, n);
    return (const uint8_t *)w + n;
}

BT_KERNEL void bt_qlinear4_groups_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight,
                                      const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                      int8_t *y, void *scratch)
{
    bt_int4_groups(bt_int4_group_mve, bt_int4_sum_mve, 2, p, x, weight, factors, bias, multiplier, y,
                   (int32_t *)scratch);
}
