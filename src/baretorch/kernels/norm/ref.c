#include "norm.h"

#include "../math/round.h"
#include "../reduce/fold.h"

/* Two passes for the statistics: squares of the differences from the mean do not cancel. The third writes. */
BT_INLINE void bt_norm_part_f32(const bt_norm_f32 *p, const float *x, const float *weight, const float *bias, float *y)
{
    float count = (float)(p->reduced[0] * p->reduced[1] * p->reduced[2]);
    float mean = 0.0f;
    float variance = p->centred ? bt_variance_f32(p->reduced, p->reduced_step, x, count, &mean)
                                : bt_fold_squares_f32(p->reduced, p->reduced_step, x, 0.0f) / count;
    float scale = 1.0f / bt_sqrt_f32(variance + p->eps);
    for (int32_t l = 0; l < p->reduced[0]; l++)
        for (int32_t m = 0; m < p->reduced[1]; m++)
            for (int32_t n = 0; n < p->reduced[2]; n++) {
                int32_t at = l * p->reduced_step[0] + m * p->reduced_step[1] + n * p->reduced_step[2];
                int32_t place = l * p->reduced_place[0] + m * p->reduced_place[1] + n * p->reduced_place[2];
                y[at] = (x[at] - mean) * scale * weight[place * p->weights] + bias[place * p->biases];
            }
}

BT_KERNEL void bt_norm_f32_ref(const bt_norm_f32 *p, const float *x, const float *weight, const float *bias, float *y)
{
    for (int32_t i = 0; i < p->kept[0]; i++)
        for (int32_t j = 0; j < p->kept[1]; j++)
            for (int32_t k = 0; k < p->kept[2]; k++) {
                int32_t at = i * p->kept_step[0] + j * p->kept_step[1] + k * p->kept_step[2];
                int32_t place = i * p->kept_place[0] + j * p->kept_place[1] + k * p->kept_place[2];
                bt_norm_part_f32(p, x + at, weight + place * p->weights, bias + place * p->biases, y + at);
            }
}
