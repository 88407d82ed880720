#include "ordered.h"

/* No integer is NaN, and compilers warn of comparing one with itself. */
#define BT_NAN_f32(v) ((v) != (v))
#define BT_NAN_s32(v) 0
#define BT_NAN_s64(v) 0

/* The element at place k: of those that may still be it, one in the middle of memory is compared with all, and leaves
 * those below it or those above it. `under` elements come before all that may be it, and `over` before its successors.
 * About 3 log2(length) passes over the row, and one for a row that is in order. */
#define BT_ORDERED_REFS(type, T)                                                                         \
    BT_INLINE int bt_before_##type(T v, T w)                                                             \
    {                                                                                                    \
        return v < w || (!BT_NAN_##type(v) && BT_NAN_##type(w));                                         \
    }                                                                                                    \
    BT_INLINE int32_t bt_kth_at_##type(const T *x, int32_t length, int32_t inner, int32_t k)             \
    {                                                                                                    \
        T low = x[0], high = x[0];                                                                       \
        int32_t under = 0, over = length;                                                                \
        for (;;) {                                                                                       \
            int32_t rest = (over - under) / 2, at = -1;                                                  \
            while (rest >= 0) {                                                                          \
                const T v = x[++at * inner];                                                             \
                if ((under == 0 || bt_before_##type(low, v)) && (over == length || bt_before_##type(v, high))) \
                    rest--;                                                                              \
            }                                                                                            \
            const T pivot = x[at * inner];                                                               \
            int32_t below = 0, above = 0;                                                                \
            for (int32_t a = 0; a < length; a++) {                                                       \
                below += bt_before_##type(x[a * inner], pivot);                                          \
                above += bt_before_##type(pivot, x[a * inner]);                                          \
            }                                                                                            \
            if (k < below) {                                                                             \
                over = below;                                                                            \
                high = pivot;                                                                            \
            } else if (k >= length - above) {                                                            \
                under = length - above;                                                                  \
                low = pivot;                                                                             \
            } else {                                                                                     \
                rest = k - below; /* equal elements keep their order */                                  \
                for (at = 0;; at++)                                                                      \
                    if (!bt_before_##type(x[at * inner], pivot) && !bt_before_##type(pivot, x[at * inner]) \
                        && rest-- == 0)                                                                  \
                        return at;                                                                       \
            }                                                                                            \
        }                                                                                                \
    }                                                                                                    \
    BT_KERNEL void bt_kth_value_##type##_ref(const bt_kth *p, const T *x, T *values, int64_t *indices)   \
    {                                                                                                    \
        for (int32_t o = 0; o < p->outer; o++)                                                           \
            for (int32_t i = 0; i < p->inner; i++) {                                                     \
                const T *row = x + o * p->length * p->inner + i;                                         \
                int32_t k = p->k, numbers = 0;                                                           \
                if (k < 0) {                                                                             \
                    for (int32_t a = 0; a < p->length; a++)                                              \
                        numbers += !BT_NAN_##type(row[a * p->inner]);                                    \
                    k = numbers == 0 ? 0 : (numbers - 1) / 2;                                            \
                    if (!p->quiet && numbers < p->length)                                                \
                        k = numbers; /* the first NaN */                                                 \
                }                                                                                        \
                int32_t at = bt_kth_at_##type(row, p->length, p->inner, k);                              \
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
