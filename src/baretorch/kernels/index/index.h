/* Elements chosen by indices that are computed: index_select, embedding, gather, scatter, index_put.
 *
 * An index below 0 counts from the end. One that is still outside is taken as the nearest that is inside, where
 * PyTorch raises: a chip must not touch memory that is not the tensor's. Of an int64 index the lower half is read. */
#ifndef BT_INDEX_H
#define BT_INDEX_H

#include "../bt.h"

/* Over o < outer, c < count and i < inner, with at = index[o * index_outer + c * index_step + i * index_inner]:
 *   gather       y[o, c, i] = x[o, at, i]
 *   scatter      y[o, at, i] = x[o, c, i]
 *   scatter_add  y[o, at, i] += x[o, c, i]
 *   scatter_prod, amax, amin: y[o, at, i] = the product, or the greater or lesser, of itself and x[o, c, i]
 * where the middle axis of the side that `at` indexes has `size` elements. An element is a run of units. */
typedef struct {
    int32_t outer;
    int32_t count;
    int32_t inner;
    int32_t run;
    int32_t size;
    int32_t index_outer;
    int32_t index_step;
    int32_t index_inner;
    int32_t words; /* of an index: 1 for int32, 2 for int64 */
} bt_index;

/* y[i] = a[i] * size[1] + b[i]: two indices as one, into the two axes as one. */
typedef struct {
    int32_t count;
    int32_t size[2];
    int32_t words[2];
} bt_ravel_index;

#ifndef BT_INLINE_KERNELS
void bt_gather_8_ref(const bt_index *p, const void *x, const void *index, void *y);
void bt_gather_16_ref(const bt_index *p, const void *x, const void *index, void *y);
void bt_gather_32_ref(const bt_index *p, const void *x, const void *index, void *y);
void bt_scatter_8_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_16_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_add_f32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_add_i32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_prod_f32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_prod_s32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_amax_f32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_amax_s32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_amin_f32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_scatter_amin_s32_ref(const bt_index *p, const void *index, const void *x, void *y);
void bt_ravel_index_ref(const bt_ravel_index *p, const void *a, const void *b, int32_t *y);
#endif

#endif
