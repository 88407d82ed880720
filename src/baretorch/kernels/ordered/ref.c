#include "ordered.h"

/* No integer is NaN, and compilers warn of comparing one with itself. */
#define BT_NAN_f32(v) ((v) != (v))
#define BT_NAN_s32(v) 0
#define BT_NAN_s64(v) 0

/* An element stands at place k if k others come before it: smaller ones, and equal ones further ahead. */
#define BT_ORDERED_REFS(type, T)                                                                         \
    BT_INLINE int32_t bt_kth_place_##type(const T *x, int32_t length, int32_t inner, int32_t at)         \
    {                                                                                                    \
        const T v = x[at * inner];                                                                       \
        int32_t place = 0;                                                                               \
        for (int32_t a = 0; a < length; a++) {                                                           \
            const T w = x[a * inner];                                                                    \
            const int same = w == v || (BT_NAN_##type(w) && BT_NAN_##type(v));                           \
            place += w < v || (!BT_NAN_##type(w) && BT_NAN_##type(v)) || (same && a < at);               \
        }                                                                                                \
        return place;                                                                                    \
    }                                                                                                    \
    BT_KERNEL void bt_kth_value_##type##_ref(const bt_kth *p, const T *x, T *values, int64_t *indices)   \
    {                                                                                                    \
        for (int32_t o = 0; o < p->outer; o++)                                                           \
            for (int32_t i = 0; i < p->inner; i++) {                                                     \
                const T *row = x + o * p->length * p->inner + i;                                         \
                int32_t k = p->k, numbers = 0, at = 0;                                                   \
                if (k < 0) {                                                                             \
                    for (int32_t a = 0; a < p->length; a++)                                              \
                        numbers += !BT_NAN_##type(row[a * p->inner]);                                    \
                    k = numbers == 0 ? 0 : (numbers - 1) / 2;                                            \
                    if (!p->quiet && numbers < p->length)                                                \
                        k = numbers; /* the first NaN */                                                 \
                }                                                                                        \
                while (bt_kth_place_##type(row, p->length, p->inner, at) != k)                           \
                    at++;                                                                                \
                *values++ = row[at * p->inner];                                                          \
                *indices++ = at;                                                                         \
            }                                                                                            \
    }                                                                                                    \
    BT_KERNEL void bt_mode_##type##_ref(const bt_mode *p, const T *x, T *values, int64_t *indices)       \
    {                                                                                                    \
        for (int32_t o = 0; o < p->outer; o++)                                                           \
            for (int32_t i = 0; i < p->inner; i++) {                                                     \
                const T *row = x + o * p->length * p->inner + i;                                         \
                T best = row[0];                                                                         \
                int32_t most = 0, at = 0;                                                                \
                for (int32_t a = 0; a < p->length; a++) {                                                \
                    const T v = row[a * p->inner];                                                       \
                    int32_t times = 0, last = a;                                                         \
                    for (int32_t b = 0; b < p->length; b++)                                              \
                        if (row[b * p->inner] == v) {                                                    \
                            times++;                                                                     \
                            last = b;                                                                    \
                        }                                                                                \
                    if (times > most || (times == most && v < best)) {                                   \
                        best = v;                                                                        \
                        most = times;                                                                    \
                        at = last;                                                                       \
                    }                                                                                    \
                }                                                                                        \
                *values++ = best;                                                                        \
                *indices++ = at;                                                                         \
            }                                                                                            \
    }

BT_ORDERED_REFS(f32, float)
BT_ORDERED_REFS(s32, int32_t)
BT_ORDERED_REFS(s64, int64_t)

#undef BT_ORDERED_REFS
#undef BT_NAN_f32
#undef BT_NAN_s32
#undef BT_NAN_s64
