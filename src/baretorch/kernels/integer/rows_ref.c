#include "integer.h"

BT_INLINE int32_t bt_int_max(const int8_t *x, int32_t length)
{
    int32_t max = x[0];
    for (int32_t i = 1; i < length; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

BT_KERNEL void bt_int_softmax_ref(const bt_int_softmax *p, const int8_t *x, const BT_FLASH int32_t *weights, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const int32_t max = bt_int_max(x, p->length);
        uint32_t sum = 0;
        for (int32_t i = 0; i < p->length; i++)
            sum += (uint32_t)weights[max - x[i]];
        for (int32_t i = 0; i < p->length; i++)
            y[i] = (int8_t)(p->zero + (int32_t)((uint32_t)weights[max - x[i]] * (uint32_t)p->most / sum));
    }
}

/* A 32nd of a distance, half up. */
BT_INLINE int32_t bt_ita_shift(int32_t distance)
{
    return (distance + 16) >> 5;
}

BT_KERNEL void bt_ita_softmax_ref(const bt_ita_softmax *p, const int8_t *x, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        int32_t max = -128;
        uint32_t sum = 0;
        for (int32_t first = 0; first < p->length; first += p->group) {
            const int32_t here = bt_int_max(x + first, p->group);
            if (here > max) {
                sum >>= bt_ita_shift(here - max);
                max = here;
            }
            for (int32_t i = first; i < first + p->group; i++)
                sum += UINT32_C(256) >> bt_ita_shift(max - x[i]);
        }
        const uint32_t inverse = (uint32_t)p->most * 256u / sum;
        for (int32_t i = 0; i < p->length; i++)
            y[i] = (int8_t)(p->zero + (int32_t)(inverse >> bt_ita_shift(max - x[i])));
    }
}

/* The largest whole number whose square is at most v. */
BT_INLINE int32_t bt_int_root(int32_t v)
{
    int32_t root = 0;
    for (int32_t bit = 1 << 14; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= v)
            root += bit;
    return root;
}

BT_INLINE int32_t bt_int_mean(const bt_int_norm *p, const int8_t *x)
{
    int32_t sum = 0;
    if (!p->centred)
        return p->x_zero;
    for (int32_t i = 0; i < p->length; i++)
        sum += x[i] - p->x_zero;
    return sum / p->length + p->x_zero;
}

BT_INLINE int32_t bt_int_deviation(const bt_int_norm *p, const int8_t *x, int32_t mean)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < p->length; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return bt_int_root(sum / p->length + 1);
}

BT_KERNEL void bt_int_norm_ref(const bt_int_norm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                               const BT_FLASH int32_t *bias, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const int32_t mean = bt_int_mean(p, x), deviation = bt_int_deviation(p, x, mean);
        for (int32_t i = 0; i < p->length; i++) {
            const int64_t v = ((int64_t)(x[i] - mean) * weight[i] / deviation + bias[i]) >> p->shift;
            y[i] = (int8_t)(v < p->lo ? p->lo : v > p->hi ? p->hi : v);
        }
    }
}

BT_KERNEL void bt_int_norm_short_ref(const bt_int_norm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                                     const BT_FLASH int32_t *bias, int8_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const int32_t mean = bt_int_mean(p, x), deviation = bt_int_deviation(p, x, mean);
        for (int32_t i = 0; i < p->length; i++) {
            const int32_t v = ((x[i] - mean) * weight[i] / deviation + bias[i]) >> p->shift;
            y[i] = (int8_t)bt_clamp_i32(v, p->lo, p->hi);
        }
    }
}
