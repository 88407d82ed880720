/* One divided by a root, for the norms of all cores. */
#ifndef BT_QNORM_INVERSE_H
#define BT_QNORM_INVERSE_H

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

/* The inverse root of the number that `count` numbers with this sum and these squares are divided by. */
BT_INLINE int32_t bt_qnorm_spread(const bt_qnorm *p, int32_t count, int32_t sum, uint32_t squares, int32_t *factor)
{
    const uint64_t eps = (uint64_t)p->eps_high << 32 | p->eps_low;
    const uint64_t spread = (uint64_t)(uint32_t)count * squares - (uint64_t)((int64_t)sum * sum);
    const uint64_t d = (spread << 16) + eps;
    return 7 + bt_qnorm_inverse(d >> 16 != 0 ? d : UINT32_C(1) << 16, factor);
}

#endif
