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

/* The next element of an input. What a literal step of 0 repeats was read once, before the loop: a compiler that knows
 * nothing of y would read it again and again. */
#define BT_ELEMENT(name) (__builtin_constant_p(name##_next) && name##_next == 0 ? name##_first : *name##_row)

/* y[i, j, k, l] = expression of v = a[i, j, k, l] and w = b[i, j, k, l] */
#define BT_BINARY_REF(symbol, params, X, Y, expression)                                                    \
    BT_KERNEL void symbol(const params *p, const X *a, const X *b, Y *y)                                   \
    {                                                                                                      \
        const int32_t a_next = p->a_step[3], b_next = p->b_step[3];                                        \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                          \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                      \
                for (int32_t k = 0; k < p->shape[2]; k++) {                                                \
                    const X *a_row = a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2];           \
                    const X *b_row = b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2];           \
                    const X a_first = *a_row, b_first = *b_row;                                            \
                    for (int32_t rest = p->shape[3]; rest > 0; rest--) {                                   \
                        const X v = BT_ELEMENT(a), w = BT_ELEMENT(b);                                      \
                        *y++ = (Y)(expression);                                                            \
                        a_row += a_next;                                                                   \
                        b_row += b_next;                                                                   \
                    }                                                                                      \
                }                                                                                          \
    }

#endif
