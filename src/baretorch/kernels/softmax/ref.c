#include "softmax.h"

#include "../math/log.h"

/* A NaN is passed over by the maximum but not by the sum, so it makes the whole row NaN. So do +inf, and a row of
 * nothing but -inf, since inf - inf is NaN. */
BT_KERNEL void bt_softmax_f32_ref(const bt_softmax_f32 *p, const float *x, float *y)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            const float *from = x + o * p->length * p->inner + i;
            float *to = y + o * p->length * p->inner + i;
            float max = -BT_INF;
            for (int32_t a = 0; a < p->length; a++)
                max = from[a * p->inner] > max ? from[a * p->inner] : max;
            float sum = 0.0f;
            for (int32_t a = 0; a < p->length; a++) {
                float e = bt_exp_f32(from[a * p->inner] - max);
                to[a * p->inner] = e;
                sum += e;
            }
            float scale = 1.0f / sum;
            for (int32_t a = 0; a < p->length; a++)
                to[a * p->inner] *= scale;
        }
    }
}

/* The number subtracted from every element has two parts, because the first, m, cancels large numbers exactly. */
BT_KERNEL void bt_log_softmax_f32_ref(const bt_softmax_f32 *p, const float *x, float *y)
{
    for (int32_t o = 0; o < p->outer; o++) {
        for (int32_t i = 0; i < p->inner; i++) {
            const float *from = x + o * p->length * p->inner + i;
            float *to = y + o * p->length * p->inner + i;
            float max = -BT_INF;
            for (int32_t a = 0; a < p->length; a++)
                max = from[a * p->inner] > max ? from[a * p->inner] : max;
            float sum = 0.0f;
            for (int32_t a = 0; a < p->length; a++)
                sum += bt_exp_f32(from[a * p->inner] - max);
            float rest = bt_log_f32(sum);
            for (int32_t a = 0; a < p->length; a++)
                to[a * p->inner] = from[a * p->inner] - max - rest;
        }
    }
}
