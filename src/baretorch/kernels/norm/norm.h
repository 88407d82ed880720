/* y = (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the elements that i, j, k share
 * in x[i, j, k, l, m, n]. Without centring the mean is taken to be 0, so that the variance is the mean square.
 * Steps are in elements: of x and y, and of the places of weight and bias. */
#ifndef BT_NORM_H
#define BT_NORM_H

#include "../bt.h"

typedef struct {
    int32_t kept[3];
    int32_t kept_step[3];
    int32_t kept_place[3];
    int32_t reduced[3];
    int32_t reduced_step[3];
    int32_t reduced_place[3];
    int32_t weights; /* 1: one weight per place; 0: one for all; the same for biases */
    int32_t biases;
    int32_t centred;
    float eps;
} bt_norm_f32;

#ifndef BT_INLINE_KERNELS
/* x and y may be the same. */
void bt_norm_f32_ref(const bt_norm_f32 *p, const float *x, const float *weight, const float *bias, float *y);
#endif

#endif
