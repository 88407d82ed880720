/* y[.., i, e] = sum over j of w[j] v[.., j, e], where w is the softmax over j of
 * scale * (sum over e of q[.., i, e] k[.., j, e]) + mask[.., i, j]
 * over steps in elements, so that heads may be in any order. Only j <= i takes part if causal. */
#ifndef BT_ATTENTION_H
#define BT_ATTENTION_H

#include "../bt.h"

/* Steps per dimension: three nested loops over heads and batches, then row and column. */
typedef struct {
    int32_t batch[3];
    int32_t queries;
    int32_t keys;
    int32_t width;   /* of q and k */
    int32_t v_width; /* of v and y */
    int32_t q_step[5];
    int32_t k_step[5];
    int32_t v_step[5];
    int32_t y_step[5];
    int32_t mask_step[5];
    int32_t causal;
    float scale;
} bt_attention_f32;

#ifndef BT_INLINE_KERNELS
/* scratch: `keys` floats. mask: added, or true where a key takes part. */
void bt_attention_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v, float *y,
                          void *scratch);
void bt_attention_masked_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                 const float *mask, float *y, void *scratch);
void bt_attention_chosen_f32_ref(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                 const uint8_t *mask, float *y, void *scratch);

/* The last step of q, k, v and y is 1. */
void bt_attention_f32_fpu(const bt_attention_f32 *p, const float *q, const float *k, const float *v, float *y,
                          void *scratch);
void bt_attention_masked_f32_fpu(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                 const float *mask, float *y, void *scratch);
void bt_attention_chosen_f32_fpu(const bt_attention_f32 *p, const float *q, const float *k, const float *v,
                                 const uint8_t *mask, float *y, void *scratch);
#endif

#endif
