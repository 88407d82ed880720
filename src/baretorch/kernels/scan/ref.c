#include "scan.h"

/* A kernel from the condition under which v takes the place of the best so far. */
#define BT_ARG_REF(symbol, T, better)                                                 \
    BT_KERNEL void symbol(const bt_scan *p, const T *x, int64_t *y)                  \
    {                                                                                 \
        for (int32_t o = 0; o < p->outer; o++)                                        \
            for (int32_t i = 0; i < p->inner; i++) {                                  \
                const T *from = x + o * p->length * p->inner + i;                     \
                T best = from[0];                                                     \
                int32_t at = 0;                                                       \
                for (int32_t a = 1; a < p->length; a++) {                             \
                    T v = from[a * p->inner];                                         \
                    if (better) {                                                     \
                        best = v;                                                     \
                        at = a;                                                       \
                    }                                                                 \
                }                                                                     \
                *y++ = at;                                                            \
            }                                                                         \
    }

/* A kernel whose sum of type A becomes an element of type R. */
#define BT_CUMSUM_REF(symbol, T, A, R)                                                \
    BT_KERNEL void symbol(const bt_scan *p, const T *x, R *y)                        \
    {                                                                                 \
        for (int32_t o = 0; o < p->outer; o++)                                        \
            for (int32_t i = 0; i < p->inner; i++) {                                  \
                int32_t first = o * p->length * p->inner + i;                         \
                A sum = 0;                                                            \
                for (int32_t a = 0; a < p->length; a++) {                             \
                    sum += (A)x[first + a * p->inner];                                \
                    y[first + a * p->inner] = (R)sum;                                 \
                }                                                                     \
            }                                                                         \
    }

BT_ARG_REF(bt_argmax_f32_ref, float, v > best || (v != v && best == best))
BT_ARG_REF(bt_argmax_s32_ref, int32_t, v > best)
BT_ARG_REF(bt_argmax_s64_ref, int64_t, v > best)
BT_ARG_REF(bt_argmin_f32_ref, float, v < best || (v != v && best == best))
BT_ARG_REF(bt_argmin_s32_ref, int32_t, v < best)
BT_ARG_REF(bt_argmin_s64_ref, int64_t, v < best)

BT_CUMSUM_REF(bt_cumsum_f32_ref, float, float, float)
BT_CUMSUM_REF(bt_cumsum_s32_ref, int32_t, uint64_t, int64_t)
BT_CUMSUM_REF(bt_cumsum_s64_ref, int64_t, uint64_t, int64_t)
BT_CUMSUM_REF(bt_cumsum_bool_ref, uint8_t, uint64_t, int64_t)

#undef BT_ARG_REF
#undef BT_CUMSUM_REF

BT_INLINE int32_t bt_topk_before_f32(float v, float w, int32_t largest)
{
    return largest ? v > w || (v != v && w == w) : v < w || (v == v && w != w);
}

/* Insertion into the outputs, which are kept in order: an element moves up past those it comes before. */
BT_KERNEL void bt_topk_f32_ref(const bt_topk_f32 *p, const float *x, float *values, int64_t *indices)
{
    for (int32_t o = 0; o < p->outer; o++)
        for (int32_t i = 0; i < p->inner; i++) {
            const float *from = x + o * p->length * p->inner + i;
            float *value = values + o * p->k * p->inner + i;
            int64_t *index = indices + o * p->k * p->inner + i;
            for (int32_t a = 0; a < p->length; a++) {
                float v = from[a * p->inner];
                int32_t at = a < p->k ? a : p->k; /* after the last of those found so far */
                while (at > 0 && bt_topk_before_f32(v, value[(at - 1) * p->inner], p->largest)) {
                    at--;
                    if (at + 1 < p->k) {
                        value[(at + 1) * p->inner] = value[at * p->inner];
                        index[(at + 1) * p->inner] = index[at * p->inner];
                    }
                }
                if (at < p->k) {
                    value[at * p->inner] = v;
                    index[at * p->inner] = a;
                }
            }
        }
}
