/* Attention for Arm cores with a single-precision FPU, where the elements of a head are contiguous. */
#include "rows.h"

#include "../matmul/columns.h"

BT_INLINE float bt_attention_score_fpu(const bt_attention_f32 *p, const float *q, const float *k)
{
    return bt_fpu_dot(0.0f, q, k, p->width);
}

BT_INLINE void bt_attention_mix_fpu(const bt_attention_f32 *p, int32_t keys, const float *w, const float *v, float *y)
{
    bt_fpu_columns(w, 1, v, p->v_step[3], y, p->v_width, keys);
}

BT_ATTENTION_KERNELS(fpu, bt_attention_score_fpu, bt_attention_mix_fpu)
