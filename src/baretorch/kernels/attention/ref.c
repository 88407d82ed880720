#include "attention.h"

#include "../math/math.h"

/* Where the innermost matrix of the batch r, s, t begins. */
BT_INLINE int32_t bt_attention_start(const int32_t step[5], int32_t r, int32_t s, int32_t t)
{
    return r * step[0] + s * step[1] + t * step[2];
}

/* One query. Keys that are all out of the game give zeros, not NaN, as PyTorch's safe softmax does; a NaN is passed
 * over by the maximum but not by the sum. Each of the two masks may be NULL. */
BT_INLINE void bt_attention_row_f32(const bt_attention_f32 *p, int32_t keys, const float *q, const float *k,
                                    const float *v, const float *added, const uint8_t *chosen, float *y, float *w)
{
    float max = -BT_INF;
    for (int32_t j = 0; j < keys; j++) {
        float score = 0.0f;
        for (int32_t e = 0; e < p->width; e++)
            score += q[e * p->q_step[4]] * k[j * p->k_step[3] + e * p->k_step[4]];
        score *= p->scale;
        if (added != NULL)
            score += added[j * p->mask_step[4]];
        if (chosen != NULL && !chosen[j * p->mask_step[4]])
            score = -BT_INF;
        w[j] = score;
        max = score > max ? score : max;
    }
    if (max == -BT_INF)
        max = 0.0f;
    float sum = 0.0f;
    for (int32_t j = 0; j < keys; j++) {
        w[j] = bt_exp_f32(w[j] - max);
        sum += w[j];
    }
    float scale = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (int32_t e = 0; e < p->v_width; e++) {
        float mean = 0.0f;
        for (int32_t j = 0; j < keys; j++)
            mean += w[j] * v[j * p->v_step[3] + e * p->v_step[4]];
        y[e * p->y_step[4]] = mean * scale;
    }
}

BT_INLINE void bt_attention_all_f32(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                    const float *added, const uint8_t *chosen, float *y, float *w)
{
    for (int32_t r = 0; r < p->batch[0]; r++)
        for (int32_t s = 0; s < p->batch[1]; s++)
            for (int32_t t = 0; t < p->batch[2]; t++)
                for (int32_t i = 0; i < p->queries; i++) {
                    int32_t mask = bt_attention_start(p->mask_step, r, s, t) + i * p->mask_step[3];
                    bt_attention_row_f32(p, p->causal && i < p->keys ? i + 1 : p->keys,
                                         q + bt_attention_start(p->q_step, r, s, t) + i * p->q_step[3],
                                         k + bt_attention_start(p->k_step, r, s, t),
                                         v + bt_attention_start(p->v_step, r, s, t), added ? added + mask : NULL,
                                         chosen ? chosen + mask : NULL,
                                         y + bt_attention_start(p->y_step, r, s, t) + i * p->y_step[3], w);
                }
}

BT_KERNEL void bt_attention_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                    float *y, void *scratch)
{
    bt_attention_all_f32(p, q, k, v, NULL, NULL, y, (float *)scratch);
}

BT_KERNEL void bt_attention_masked_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                           const float *mask, float *y, void *scratch)
{
    bt_attention_all_f32(p, q, k, v, mask, NULL, y, (float *)scratch);
}

BT_KERNEL void bt_attention_chosen_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                           const uint8_t *mask, float *y, void *scratch)
{
    bt_attention_all_f32(p, q, k, v, NULL, mask, y, (float *)scratch);
}
