#include "qnorm.h"

/* The root of v, rounded down. */
BT_INLINE uint32_t bt_root_u32(uint32_t v)
{
    uint32_t root = 0;
    for (uint32_t bit = 1u << 15; bit != 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= v)
            root |= bit;
    return root;
}

/* 1 / root(d) = factor / 2^(22 + 15 + result) */
BT_INLINE int32_t bt_qnorm_inverse(uint64_t d, int32_t *factor)
{
    int32_t exponent = 0;
    for (; d >> 32 != 0; d >>= 2)
        exponent++;
    uint32_t v = (uint32_t)d;
    for (; v >> 30 == 0; v <<= 2)
        exponent--;
    *factor = (int32_t)(0xffffffffu / bt_root_u32(v) << 5);
    return exponent;
}

/* One group of one batch: x and y are its first numbers, `step` numbers lie from a place to the next. */
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
    const uint64_t eps = (uint64_t)p->eps_high << 32 | p->eps_low;
    const uint64_t spread = (uint64_t)(uint32_t)count * squares - (uint64_t)((int64_t)sum * sum);
    const uint64_t d = (spread << 16) + eps;
    int32_t factor;
    const int32_t shift = 7 + bt_qnorm_inverse(d >> 16 != 0 ? d : UINT32_C(1) << 16, &factor);
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
