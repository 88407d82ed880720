/* int8 attention query by query, around the two functions that do the products. */
#ifndef BT_QATTENTION_ROWS_H
#define BT_QATTENTION_ROWS_H

#include "qattention.h"

/* The sum of products of a query and a key. */
typedef int32_t bt_qattention_dot(const bt_qattention *p, const int8_t *q, const int8_t *k);

/* y[e] = requantize(sum over j of w[j] * (v[j, e] - v_zero)), total being the sum of w */
typedef void bt_qattention_mix(const bt_qattention *p, int32_t keys, const int32_t *w, int32_t total, const int8_t *v,
                               int8_t *y);

#define BT_QATTENTION_NONE (-(INT32_C(1) << 30)) /* less than any score */

/* Where the innermost matrix of the batch r, s, t begins. */
BT_INLINE int32_t bt_qattention_start(const int32_t step[5], int32_t r, int32_t s, int32_t t)
{
    return r * step[0] + s * step[1] + t * step[2];
}

/* Scores become weights whose sum is 2^14, or all zero if no key takes part; gives their sum. */
BT_INLINE int32_t bt_qattention_weights(int32_t *w, int32_t keys, int32_t max, const BT_FLASH int16_t *table)
{
    uint32_t sum = 0;
    for (int32_t j = 0; j < keys; j++) {
        const uint32_t distance = (uint32_t)(max - w[j]);
        w[j] = max > BT_QATTENTION_NONE && distance < 16 << 8 ? table[distance & 255] >> (distance >> 8) : 0;
        sum += (uint32_t)w[j];
    }
    const uint32_t inverse = sum > 0 ? 0xffffffffu / sum : 0;
    int32_t total = 0;
    for (int32_t j = 0; j < keys; j++) {
        w[j] = (int32_t)((((uint32_t)w[j] * inverse >> 17) + 1) >> 1);
        total += w[j];
    }
    return total;
}

/* One query. Each of the two masks may be NULL. */
BT_INLINE void bt_qattention_row(bt_qattention_dot *dot, bt_qattention_mix *mix, const bt_qattention *p, int32_t keys,
                                 const int8_t *q, const int8_t *k, const int8_t *v, const int16_t *added,
                                 const uint8_t *chosen, const BT_FLASH int16_t *table, int8_t *y, int32_t *w)
{
    int32_t max = BT_QATTENTION_NONE;
    for (int32_t j = 0; j < keys; j++) {
        const int32_t more = added != NULL ? added[j * p->mask_step[4]] : 0;
        const int out = more == INT16_MIN || (chosen != NULL && !chosen[j * p->mask_step[4]]);
        w[j] = BT_QATTENTION_NONE;
        if (!out) {
            const int32_t sum = dot(p, q, k + j * p->k_step[3]);
            w[j] = bt_scale(sum * (INT32_C(1) << p->score_shift), p->score_multiplier, more);
        }
        max = w[j] > max ? w[j] : max;
    }
    mix(p, keys, w, bt_qattention_weights(w, keys, max, table), v, y);
}

BT_INLINE void bt_qattention_all(bt_qattention_dot *dot, bt_qattention_mix *mix, const bt_qattention *p,
                                 const int8_t *q, const int8_t *k, const int8_t *v, const int16_t *added,
                                 const uint8_t *chosen, const BT_FLASH int16_t *table, int8_t *y, int32_t *w)
{
    for (int32_t r = 0; r < p->batch[0]; r++)
        for (int32_t s = 0; s < p->batch[1]; s++)
            for (int32_t t = 0; t < p->batch[2]; t++)
                for (int32_t i = 0; i < p->queries; i++) {
                    const int32_t mask = bt_qattention_start(p->mask_step, r, s, t) + i * p->mask_step[3];
                    bt_qattention_row(dot, mix, p, p->causal && i < p->keys ? i + 1 : p->keys,
                                      q + bt_qattention_start(p->q_step, r, s, t) + i * p->q_step[3],
                                      k + bt_qattention_start(p->k_step, r, s, t),
                                      v + bt_qattention_start(p->v_step, r, s, t), added ? added + mask : NULL,
                                      chosen ? chosen + mask : NULL, table,
                                      y + bt_qattention_start(p->y_step, r, s, t) + i * p->y_step[3], w);
                }
}

/* One channel of that. */
BT_INLINE void bt_qattention_channel(const bt_qattention *p, int32_t keys, const int32_t *w, int32_t total,
                                     const int8_t *v, int8_t *y, int32_t e)
{
    int32_t sum = -total * p->v_zero;
    for (int32_t j = 0; j < keys; j++)
        sum += w[j] * v[j * p->v_step[3] + e * p->v_step[4]];
    y[e * p->y_step[4]] = bt_requantize(sum, p->multiplier, p->shift, p->zero, -128, 127);
}

/* The kernels of qattention.h whose names end in `variant`. */
#define BT_QATTENTION_KERNELS(variant, dot, mix)                                                                       \
    BT_KERNEL void bt_qattention_##variant(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,  \
                                           const BT_FLASH int16_t *table, int8_t *y, void *scratch)                    \
    {                                                                                                                  \
        bt_qattention_all(dot, mix, p, q, k, v, NULL, NULL, table, y, (int32_t *)scratch);                             \
    }                                                                                                                  \
    BT_KERNEL void bt_qattention_masked_##variant(const bt_qattention *p, const int8_t *q, const int8_t *k,            \
                                                  const int8_t *v, const int16_t *mask, const BT_FLASH int16_t *table, \
                                                  int8_t *y, void *scratch)                                            \
    {                                                                                                                  \
        bt_qattention_all(dot, mix, p, q, k, v, mask, NULL, table, y, (int32_t *)scratch);                             \
    }                                                                                                                  \
    BT_KERNEL void bt_qattention_chosen_##variant(const bt_qattention *p, const int8_t *q, const int8_t *k,            \
                                                  const int8_t *v, const uint8_t *mask, const BT_FLASH int16_t *table, \
                                                  int8_t *y, void *scratch)                                            \
    {                                                                                                                  \
        bt_qattention_all(dot, mix, p, q, k, v, NULL, mask, table, y, (int32_t *)scratch);                             \
    }

#endif
