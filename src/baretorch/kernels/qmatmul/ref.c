#include "qmatmul.h"

BT_INLINE void bt_qmatmul_one(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->m; i++) {
        for (int32_t j = 0; j < p->n; j++) {
            int32_t sum = 0;
            for (int32_t l = 0; l < p->k; l++)
                sum += (a[i * p->a_step[3] + l * p->a_step[4]] - p->a_zero) *
                       (b[l * p->b_step[3] + j * p->b_step[4]] - p->b_zero);
            y[i * p->y_step[3] + j * p->y_step[4]] =
                bt_requantize(sum, p->multiplier, p->shift, p->zero, p->lo, p->hi);
        }
    }
}

BT_KERNEL void bt_qmatmul_ref(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    BT_EACH_MATRIX(bt_qmatmul_one, p);
}
