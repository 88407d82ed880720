/* The loops of elementwise kernels: a kernel is a name, its types, and an expression of one element of each input. */
#ifndef BT_ELEMENTWISE_LOOPS_H
#define BT_ELEMENTWISE_LOOPS_H

#include "elementwise.h"

/* y[i] = expression of v = x[i] */
#define BT_UNARY_REF(symbol, params, X, Y, expression)          \
    BT_KERNEL void symbol(const params *p, const X *x, Y *y)    \
    {                                                           \
        for (int32_t i = 0; i < p->count; i++) {                \
            const X v = x[i];                                   \
            y[i] = (Y)(expression);                             \
        }                                                       \
    }

/* An element that the inner loop repeats is read once: the compiler cannot know that y is not there. */
#define BT_ELEMENT(name, l) (p->name##_step[3] == 0 ? name##_first : name##_row[(l) * p->name##_step[3]])

/* y[i, j, k, l] = expression of v = a[i, j, k, l] and w = b[i, j, k, l] */
#define BT_BINARY_REF(symbol, params, X, Y, expression)                                                    \
    BT_KERNEL void symbol(const params *p, const X *a, const X *b, Y *y)                                   \
    {                                                                                                      \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                          \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                      \
                for (int32_t k = 0; k < p->shape[2]; k++) {                                                \
                    const X *a_row = a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2];           \
                    const X *b_row = b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2];           \
                    const X a_first = *a_row, b_first = *b_row;                                            \
                    for (int32_t l = 0; l < p->shape[3]; l++) {                                            \
                        const X v = BT_ELEMENT(a, l), w = BT_ELEMENT(b, l);                                \
                        *y++ = (Y)(expression);                                                            \
                    }                                                                                      \
                }                                                                                          \
    }

#endif
