#include "qwide.h"

#include "../elementwise/loops.h"

BT_BINARY_REF(bt_qadd16_ref, bt_qadd16, int16_t, int16_t, bt_qadd16_one(p, v, w))

/* The first element inside of a side, and where the window ends. */
BT_INLINE int32_t bt_ends16(int32_t start, int32_t kernel, int32_t size, int32_t *first)
{
    *first = start > 0 ? start : 0;
    return start + kernel < size ? start + kernel : size;
}

/* For every window, `each` updates `acc`, which begins with `begin`, by each number v; `last` is the result. */
#define BT_POOL16(symbol, params, begin, each, last)                                                                \
    BT_KERNEL void symbol(const params *p, const int16_t *x, int16_t *y)                                            \
    {                                                                                                               \
        for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {                              \
            for (int32_t h = 0; h < p->out_h; h++) {                                                                \
                int32_t top, left;                                                                                  \
                const int32_t bottom = bt_ends16(h * p->stride_h - p->pad_top, p->kernel_h, p->in_h, &top);         \
                for (int32_t w = 0; w < p->out_w; w++) {                                                            \
                    const int32_t right = bt_ends16(w * p->stride_w - p->pad_left, p->kernel_w, p->in_w, &left);    \
                    for (int32_t c = 0; c < p->channels; c++) {                                                     \
                        int32_t acc = begin;                                                                        \
                        for (int32_t i = top; i < bottom; i++) {                                                    \
                            for (int32_t j = left; j < right; j++) {                                                \
                                const int32_t v = x[(i * p->in_w + j) * p->channels + c];                           \
                                acc = each;                                                                         \
                            }                                                                                       \
                        }                                                                                           \
                        *y++ = (int16_t)(last);                                                                     \
                    }                                                                                               \
                }                                                                                                   \
            }                                                                                                       \
        }                                                                                                           \
    }

BT_POOL16(bt_qmax_pool16_ref, bt_qmax_pool2d, -32768, v > acc ? v : acc, acc)
BT_POOL16(bt_qavg_pool16_ref, bt_qavg_pool2d, 0, acc + v, bt_qavg16_one(p, acc))

#undef BT_POOL16

BT_KERNEL void bt_qsoftmax16_ref(const bt_qsoftmax16 *p, const int16_t *x, const BT_FLASH int16_t *table, int16_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        int32_t max = x[0];
        for (int32_t i = 1; i < p->length; i++)
            max = x[i] > max ? x[i] : max;
        uint32_t sum = 0;
        for (int32_t i = 0; i < p->length; i++) {
            const uint32_t e = bt_exp16(table, max - x[i]); /* below 65535 */
            sum += e;
            y[i] = (int16_t)e;
        }
        const uint32_t inverse = 0xffffffffu / sum;
        for (int32_t i = 0; i < p->length; i++)
            y[i] = bt_share16((uint16_t)y[i], inverse);
    }
}
