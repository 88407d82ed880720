/* Attention row by row, around the two functions that do the products. */
#ifndef BT_ATTENTION_ROWS_H
#define BT_ATTENTION_ROWS_H

#include "attention.h"

#include "../math/math.h"

/* The product of a query and a key. */
typedef float bt_attention_score(const bt_attention_f32 *p, const float *q, const float *k);

/* y[e] = sum over j of w[j] * v[j, e] */
typedef void bt_attention_mix(const bt_attention_f32 *p, int32_t keys, const float *w, const float *v, float *y);

/* Where the innermost matrix of the batch r, s, t begins. */
BT_INLINE int32_t bt_attention_start(const int32_t step[5], int32_t r, int32_t s, int32_t t)
{
    return r * step[0] + s * step[1] + t * step[2];
}

/* One query. Keys that are all out of the game give zeros, not NaN, as PyTorch's safe softmax does; a NaN is passed
 * over by the maximum but not by the sum. Each of the two masks may be NULL. */
BT_INLINE void bt_attention_row_f32(bt_attention_score *score, bt_attention_mix *mix, const bt_attention_f32 *p,
                                    int32_t keys, const float *q, const float *k, const float *v, const float *added,
                                    const uint8_t *chosen, float *y, float *w)
{
    float max = -BT_INF;
    for (int32_t j = 0; j < keys; j++) {
        float s = score(p, q, k + j * p->k_step[3]) * p->scale;
        if (added != NULL)
            s += added[j * p->mask_step[4]];
        if (chosen != NULL && !chosen[j * p->mask_step[4]])
            s = -BT_INF;
        w[j] = s;
        max = s > max ? s : max;
    }
    if (max == -BT_INF)
        max = 0.0f;
    float sum = 0.0f;
    for (int32_t j = 0; j < keys; j++) {
        w[j] = bt_exp_f32(w[j] - max);
        sum += w[j];
    }
    float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int32_t j = 0; j < keys; j++)
        w[j] *= scale;
    mix(p, keys, w, v, y);
}

BT_INLINE void bt_attention_all_f32(bt_attention_score *score, bt_attention_mix *mix, const bt_attention_f32 *p,
                                    const float *q, const float *k, const float *v, const float *added,
                                    const uint8_t *chosen, float *y, float *w)
{
    for (int32_t r = 0; r < p->batch[0]; r++)
        for (int32_t s = 0; s < p->batch[1]; s++)
            for (int32_t t = 0; t < p->batch[2]; t++)
                for (int32_t i = 0; i < p->queries; i++) {
                    int32_t mask = bt_attention_start(p->mask_step, r, s, t) + i * p->mask_step[3];
                    bt_attention_row_f32(score, mix, p, p->causal && i < p->keys ? i + 1 : p->keys,
                                         q + bt_attention_start(p->q_step, r, s, t) + i * p->q_step[3],
                                         k + bt_attention_start(p->k_step, r, s, t),
                                         v + bt_attention_start(p->v_step, r, s, t), added ? added + mask : NULL,
                                         chosen ? chosen + mask : NULL,
                                         y + bt_attention_start(p->y_step, r, s, t) + i * p->y_step[3], w);
                }
}

/* The kernels of attention.h whose names end in `variant`. */
#define BT_ATTENTION_KERNELS(variant, score, mix)                                                                      \
    BT_KERNEL void bt_attention_f32_##variant(const bt_attention_f32 *p, const float *q, const float *k,               \
                                              const float *v, float *y, void *scratch)                                 \
    {                                                                                                                  \
        bt_attention_all_f32(score, mix, p, q, k, v, NULL, NULL, y, (float *)scratch);                                 \
    }                                                                                                                  \
    BT_KERNEL void bt_attention_masked_f32_##variant(const bt_attention_f32 *p, const float *q, const float *k,        \
                                                     const float *v, const float *mask, float *y, void *scratch)       \
    {                                                                                                                  \
        bt_attention_all_f32(score, mix, p, q, k, v, mask, NULL, y, (float *)scratch);                                 \
    }                                                                                                                  \
    BT_KERNEL void bt_attention_chosen_f32_##variant(const bt_attention_f32 *p, const float *q, const float *k,        \
                                                     const float *v, const uint8_t *mask, float *y, void *scratch)     \
    {                                                                                                                  \
        bt_attention_all_f32(score, mix, p, q, k, v, NULL, mask, y, (float *)scratch);                                 \
    }

#endif
