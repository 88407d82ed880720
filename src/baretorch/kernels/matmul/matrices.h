/* Matrices by matrices, around a function that multiplies two of them. */
#ifndef BT_MATMUL_MATRICES_H
#define BT_MATMUL_MATRICES_H

#include "../matrices.h"
#include "matmul.h"

typedef void bt_matmul_one(const bt_matmul_f32 *p, const float *a, const float *b, float *y);

BT_INLINE void bt_matmul_all_f32(bt_matmul_one *one, const bt_matmul_f32 *p, const float *a, const float *b, float *y)
{
    BT_EACH_MATRIX(one, p);
}

#endif
