#include "inverse.h"

/* One group of one batch: x and y are its first numbers, and a place is `step` numbers after the one before. */
BT_INLINE void bt_qnorm_group(const bt_qnorm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                              const BT_FLASH int32_t *bias, int8_t *y, int32_t step)
{
    const int32_t count = p->places * p->depth;
    int32_t sum = 0;
    uint32_t squares = 0;
    for (int32_t i = 0; i < p->places; i++) {
        for (int32_t k = 0; k < p->depth; k++) {
            const int32_t v = x[i * step + k] - p->x_zero;
            sum += v;
            squares += (uint32_t)(v * v);
        }
    }
    if (!p->centred)
        sum = 0;
    int32_t factor;
    const int32_t shift = bt_qnorm_spread(p, count, sum, squares, &factor);
    for (int32_t i = 0; i < p->places; i++) {
        for (int32_t k = 0; k < p->depth; k++) {
            const int32_t centred = count * (x[i * step + k] - p->x_zero) - sum;
            const int32_t normal = (int32_t)((int64_t)centred * factor >> shift);
            const int32_t scaled = (int32_t)(((int64_t)normal * weight[k] + ((int64_t)1 << 31)) >> 32);
            y[i * step + k] = (int8_t)bt_clamp_i32((scaled + bias[k]) >> 8, -128, 127);
        }
    }
}

BT_KERNEL void bt_qnorm_ref(const bt_qnorm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                            const BT_FLASH int32_t *bias, int8_t *y)
{
    const int32_t step = p->groups * p->depth;
    for (int32_t n = 0; n < p->batch; n++, x += p->places * step, y += p->places * step)
        for (int32_t g = 0; g < step; g += p->depth)
            bt_qnorm_group(p, x + g, weight + g, bias + g, y + g, step);
}
