#include "rows.h"

BT_INLINE float bt_attention_score_ref(const bt_attention_f32 *p, const float *q, const float *k)
{
    float sum = 0.0f;
    for (int32_t e = 0; e < p->width; e++)
        sum += q[e * p->q_step[4]] * k[e * p->k_step[4]];
    return sum;
}

BT_INLINE void bt_attention_mix_ref(const bt_attention_f32 *p, int32_t keys, const float *w, const float *v, float *y)
{
    for (int32_t e = 0; e < p->v_width; e++) {
        float sum = 0.0f;
        for (int32_t j = 0; j < keys; j++)
            sum += w[j] * v[j * p->v_step[3] + e * p->v_step[4]];
        y[e * p->y_step[4]] = sum;
    }
}

BT_ATTENTION_KERNELS(ref, bt_attention_score_ref, bt_attention_mix_ref)
