#include "layout.h"

#include <stdbool.h>

BT_KERNEL void bt_permute_f32_ref(const bt_permute_f32 *p, const float *x, float *y)
{
    const int32_t *n = p->shape;
    const int32_t *s = p->step;
    for (int32_t i = 0; i < n[0]; i++)
        for (int32_t j = 0; j < n[1]; j++)
            for (int32_t k = 0; k < n[2]; k++)
                for (int32_t l = 0; l < n[3]; l++)
                    for (int32_t m = 0; m < n[4]; m++)
                        for (int32_t o = 0; o < n[5]; o++)
                            *y++ = x[i * s[0] + j * s[1] + k * s[2] + l * s[3] + m * s[4] + o * s[5]];
}

BT_KERNEL void bt_pad_f32_ref(const bt_pad_f32 *p, const float *x, float *y)
{
    const int32_t *n = p->in;
    for (int32_t i = -p->before[0]; i < p->out[0] - p->before[0]; i++) {
        bool i_inside = i >= 0 && i < n[0];
        for (int32_t j = -p->before[1]; j < p->out[1] - p->before[1]; j++) {
            bool j_inside = i_inside && j >= 0 && j < n[1];
            for (int32_t k = -p->before[2]; k < p->out[2] - p->before[2]; k++) {
                bool k_inside = j_inside && k >= 0 && k < n[2];
                for (int32_t l = -p->before[3]; l < p->out[3] - p->before[3]; l++)
                    *y++ = k_inside && l >= 0 && l < n[3] ? x[((i * n[1] + j) * n[2] + k) * n[3] + l] : p->value;
            }
        }
    }
}
