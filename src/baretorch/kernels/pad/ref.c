#include "pad.h"

#include "../move/unit.h"

typedef uint64_t __attribute__((may_alias, aligned(4))) bt_pad_u64;

/* Elements first up to last of a row of y are inside x. */
#define BT_PAD_REF(symbol, unit)                                                                            \
    BT_KERNEL void symbol(const bt_pad *p, const void *x, void *y)                                          \
    {                                                                                                       \
        const int32_t *n = p->in;                                                                           \
        const int32_t *b = p->before;                                                                       \
        const int32_t first = b[3] > 0 ? b[3] : 0;                                                          \
        const int32_t last = b[3] + n[3] < p->out[3] ? b[3] + n[3] : p->out[3];                             \
        const int32_t skipped = first - b[3];                                                               \
        const unit value = (unit)p->value;                                                                  \
        unit *to = (unit *)y;                                                                               \
        for (int32_t i = -b[0]; i < p->out[0] - b[0]; i++)                                                  \
            for (int32_t j = -b[1]; j < p->out[1] - b[1]; j++)                                              \
                for (int32_t k = -b[2]; k < p->out[2] - b[2]; k++) {                                        \
                    int32_t l = 0;                                                                          \
                    if (i >= 0 && i < n[0] && j >= 0 && j < n[1] && k >= 0 && k < n[2] && first < last) {   \
                        const unit *from = (const unit *)x + ((i * n[1] + j) * n[2] + k) * n[3] + skipped;  \
                        for (; l < first; l++)                                                              \
                            *to++ = value;                                                                  \
                        for (; l < last; l++)                                                               \
                            *to++ = *from++;                                                                \
                    }                                                                                       \
                    for (; l < p->out[3]; l++)                                                              \
                        *to++ = value;                                                                      \
                }                                                                                           \
    }

BT_PAD_REF(bt_pad_8_ref, bt_u8)
BT_PAD_REF(bt_pad_16_ref, bt_u16)
BT_PAD_REF(bt_pad_32_ref, bt_u32)
BT_PAD_REF(bt_pad_64_ref, bt_pad_u64)

#undef BT_PAD_REF
