/* qlinear with weights of 4 bits in groups and fours of inputs, for cores with the DSP extension. */
#include "../int4_dsp.h"
#include "../int4_groups.h"

BT_INLINE const void *bt_int4_group_dsp(int32_t *sums, const int8_t *x, const void *w, int32_t n, int32_t start)
{
    return bt_int4_four(sums, x, (const int32_t *)w, n >> 2, start);
}

BT_KERNEL void bt_qlinear4_groups_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight,
                                      const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                      int8_t *y, void *scratch)
{
    bt_int4_groups(bt_int4_group_dsp, bt_int4_sum_dsp, 4, p, x, weight, factors, bias, multiplier, y,
                   (int32_t *)scratch);
}
