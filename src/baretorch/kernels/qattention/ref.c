#include "rows.h"

BT_INLINE int32_t bt_qattention_dot_ref(const bt_qattention *p, const int8_t *q, const int8_t *k)
{
    int32_t sum = 0;
    for (int32_t e = 0; e < p->width; e++)
        sum += (q[e * p->q_step[4]] - p->q_zero) * (k[e * p->k_step[4]] - p->k_zero);
    return sum;
}

BT_INLINE void bt_qattention_mix_ref(const bt_qattention *p, int32_t keys, const int32_t *w, int32_t total,
                                     const int8_t *v, int8_t *y)
{
    for (int32_t e = 0; e < p->v_width; e++)
        bt_qattention_channel(p, keys, w, total, v, y, e);
}

BT_QATTENTION_KERNELS(ref, bt_qattention_dot_ref, bt_qattention_mix_ref)
