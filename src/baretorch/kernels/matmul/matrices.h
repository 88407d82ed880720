/* Matrices by matrices, around a function that multiplies two of them. */
#ifndef BT_MATMUL_MATRICES_H
#define BT_MATMUL_MATRICES_H

#include "matmul.h"

typedef void bt_matmul_one(const bt_matmul_f32 *p, const float *a, const float *b, float *y);

BT_INLINE void bt_matmul_all_f32(bt_matmul_one *one, const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    for (int32_t r = 0; r < p->batch[0]; r++)
        for (int32_t s = 0; s < p->batch[1]; s++)
            for (int32_t t = 0; t < p->batch[2]; t++)
                one(p, a + r * p->a_step[0] + s * p->a_step[1] + t * p->a_step[2],
                    b + r * p->b_step[0] + s * p->b_step[1] + t * p->b_step[2],
                    y + r * p->y_step[0] + s * p->y_step[1] + t * p->y_step[2]);
}

#endif
