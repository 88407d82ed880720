/* The votes of decision trees: y[n, t] = the sum, minimum or maximum of what the leaves that row n of x reaches give to
 * target t. A node compares keys: integers in the order of the floats, so that x <= threshold is exact. */
#ifndef BT_TREES_H
#define BT_TREES_H

#include "../bt.h"

typedef struct {
    int32_t rows;
    int32_t features; /* in a row of x */
    int32_t targets;  /* in a row of y */
    int32_t trees;
    int32_t aggregate; /* 0 sum, 1 minimum, 2 maximum */
} bt_trees_f32;

typedef struct {
    int32_t rows;
    int32_t features;
    int32_t targets;
    int32_t trees;
    int32_t shift;     /* bits of a node's distance, below those of its feature */
    int32_t vote_bits; /* of a vote's number, below those of its target */
    int32_t has_signs; /* whether thresholds, and so probably features, may be negative */
} bt_trees_compact_f32;

typedef int32_t __attribute__((may_alias)) bt_trees_word; /* the bits of a float, with its alignment */

BT_INLINE int32_t bt_trees_bits(const float *x)
{
    return *(const bt_trees_word *)(const void *)x;
}

/* The key of a float: both zeros have one, and NaN has the largest. */
BT_INLINE int32_t bt_trees_key(const float *x)
{
    const int32_t bits = bt_trees_bits(x);
    if ((bits & INT32_MAX) > 0x7f800000)
        return INT32_MAX;
    return bits < 0 ? INT32_MIN - bits : bits;
}

#ifndef BT_INLINE_KERNELS
/* nodes[n][4]: 2 * feature + (1 if NaN counts as below), key of the threshold, next node at most, next node above; a
 * leaf is ~number. Leaf l has the votes starts[l] to starts[l + 1], each for one of the `places`. */
void bt_trees_f32_ref(const bt_trees_f32 *p, const float *x, const int32_t BT_FLASH *nodes,
                      const int32_t BT_FLASH *roots, const int32_t BT_FLASH *starts, const int32_t BT_FLASH *places,
                      const float BT_FLASH *votes, float *y);
/* nodes: units of 16 bits, see compact.c: first lists of votes, (target << vote_bits) + the vote's number, plus 0x8000 in
 * the last one of a list. roots[t] is where tree t begins. A leaf is 0x8000 + where its list begins. keys has a row of
 * x. */
void bt_trees_f32_compact(const bt_trees_compact_f32 *p, const float *x, const BT_FLASH int16_t *nodes,
                          const BT_FLASH int16_t *roots, const BT_FLASH float *votes, float *y, float *keys);
#endif

#endif
