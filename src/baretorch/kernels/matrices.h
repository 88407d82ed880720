/* Products of many matrices. */
#ifndef BT_MATRICES_H
#define BT_MATRICES_H

/* Call one(..., a, b, y) with each matrix of the batch. The macro uses the variables p, a, b and y of its function. */
#define BT_EACH_MATRIX(one, ...)                                                                                       \
    for (int32_t r = 0; r < p->batch[0]; r++)                                                                          \
        for (int32_t s = 0; s < p->batch[1]; s++)                                                                      \
            for (int32_t t = 0; t < p->batch[2]; t++)                                                                  \
                one(__VA_ARGS__, a + r * p->a_step[0] + s * p->a_step[1] + t * p->a_step[2],                           \
                    b + r * p->b_step[0] + s * p->b_step[1] + t * p->b_step[2],                                        \
                    y + r * p->y_step[0] + s * p->y_step[1] + t * p->y_step[2])

#endif
