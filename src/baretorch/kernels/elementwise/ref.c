#include "elementwise.h"

#include "../math/math.h"

/* A kernel from an expression of v. */
#define BT_UNARY_REF(symbol, params, expression)                        \
    BT_KERNEL void symbol(const params *p, const float *x, float *y)    \
    {                                                                   \
        for (int32_t i = 0; i < p->count; i++) {                        \
            float v = x[i];                                             \
            y[i] = expression;                                          \
        }                                                               \
    }

/* A kernel from an expression of v and w. */
#define BT_BINARY_REF(symbol, expression)                                                                \
    BT_KERNEL void symbol(const bt_binary_f32 *p, const float *a, const float *b, float *y)              \
    {                                                                                                    \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                        \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                    \
                for (int32_t k = 0; k < p->shape[2]; k++) {                                              \
                    const float *row_a = a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2];     \
                    const float *row_b = b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2];     \
                    for (int32_t l = 0; l < p->shape[3]; l++) {                                          \
                        float v = row_a[l * p->a_step[3]];                                               \
                        float w = row_b[l * p->b_step[3]];                                               \
                        *y++ = bt_clamp_f32(expression, p->lo, p->hi);                                   \
                    }                                                                                    \
                }                                                                                        \
    }

BT_UNARY_REF(bt_clamp_f32_ref, bt_limit_f32, bt_clamp_f32(v, p->lo, p->hi))
BT_UNARY_REF(bt_tanh_f32_ref, bt_unary_f32, bt_tanh_f32(v))
BT_UNARY_REF(bt_sigmoid_f32_ref, bt_unary_f32, bt_sigmoid_f32(v))

BT_BINARY_REF(bt_add_f32_ref, v + w)
BT_BINARY_REF(bt_mul_f32_ref, v * w)

#undef BT_UNARY_REF
#undef BT_BINARY_REF
