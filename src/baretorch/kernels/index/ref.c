#include "index.h"

#include "../move/unit.h"

typedef int32_t __attribute__((may_alias)) bt_index_word;

/* Index number i of a tensor, brought inside an axis of `size`. The chips are little-endian. */
BT_INLINE int32_t bt_index_at(const void *index, int32_t i, int32_t words, int32_t size)
{
    int32_t at = ((const bt_index_word *)index)[i * words];
    if (at < 0)
        at += size;
    if (at < 0)
        return 0;
    return at < size ? at : size - 1;
}

/* A kernel from a statement that takes one element `from` x `to` y. */
#define BT_INDEX_REF(symbol, arguments, unit, x_at, x_size, y_at, y_size, statement)                        \
    BT_KERNEL void symbol arguments                                                                         \
    {                                                                                                       \
        for (int32_t o = 0; o < p->outer; o++)                                                              \
            for (int32_t c = 0; c < p->count; c++)                                                          \
                for (int32_t i = 0; i < p->inner; i++) {                                                    \
                    int32_t order = o * p->index_outer + c * p->index_step + i * p->index_inner;            \
                    int32_t at = bt_index_at(index, order, p->words, p->size);                              \
                    const unit *from = (const unit *)x + ((o * (x_size) + (x_at)) * p->inner + i) * p->run; \
                    unit *to = (unit *)y + ((o * (y_size) + (y_at)) * p->inner + i) * p->run;               \
                    statement;                                                                              \
                }                                                                                           \
    }

#define BT_GATHER_REF(symbol, unit)                                                                            \
    BT_INDEX_REF(symbol, (const bt_index *p, const void *x, const void *index, void *y), unit, at, p->size, c, \
                 p->count, BT_COPY(unit, to, from, p->run))

#define BT_SCATTER_REF(symbol, unit)                                                                           \
    BT_INDEX_REF(symbol, (const bt_index *p, const void *index, const void *x, void *y), unit, c, p->count,    \
                 at, p->size, BT_COPY(unit, to, from, p->run))

/* A kernel, from the combination of an element v and an element w that is scattered there. */
#define BT_SCATTER_INTO_REF(symbol, type, expression)                                                          \
    BT_INDEX_REF(symbol, (const bt_index *p, const void *index, const void *x, void *y), type, c, p->count,    \
                 at, p->size, for (int32_t r = 0; r < p->run; r++) {                                           \
                     const type v = to[r];                                                                     \
                     const type w = from[r];                                                                   \
                     to[r] = expression;                                                                       \
                 })

BT_GATHER_REF(bt_gather_8_ref, bt_u8)
BT_GATHER_REF(bt_gather_16_ref, bt_u16)
BT_GATHER_REF(bt_gather_32_ref, bt_u32)
BT_SCATTER_REF(bt_scatter_8_ref, bt_u8)
BT_SCATTER_REF(bt_scatter_16_ref, bt_u16)
BT_SCATTER_REF(bt_scatter_32_ref, bt_u32)
BT_SCATTER_INTO_REF(bt_scatter_add_f32_ref, float, v + w)
BT_SCATTER_INTO_REF(bt_scatter_add_i32_ref, bt_u32, v + w)
BT_SCATTER_INTO_REF(bt_scatter_prod_f32_ref, float, v *w)
BT_SCATTER_INTO_REF(bt_scatter_prod_s32_ref, bt_u32, v *w)
BT_SCATTER_INTO_REF(bt_scatter_amax_f32_ref, float, bt_max_f32(v, w))
BT_SCATTER_INTO_REF(bt_scatter_amax_s32_ref, int32_t, v > w ? v : w)
BT_SCATTER_INTO_REF(bt_scatter_amin_f32_ref, float, -bt_max_f32(-v, -w))
BT_SCATTER_INTO_REF(bt_scatter_amin_s32_ref, int32_t, v < w ? v : w)

#undef BT_GATHER_REF
#undef BT_SCATTER_REF
#undef BT_SCATTER_INTO_REF
#undef BT_INDEX_REF

BT_KERNEL void bt_ravel_index_ref(const bt_ravel_index *p, const void *a, const void *b, int32_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = bt_index_at(a, i, p->words[0], p->size[0]) * p->size[1] + bt_index_at(b, i, p->words[1], p->size[1]);
}
