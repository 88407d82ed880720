/* Trees in units of 16 bits, for thresholds that have no more bits, as halves up to 128 do. A comparison takes two
 * units, a leaf one. What follows if the feature is at most the threshold comes next; what follows otherwise is some
 * units later, where several comparisons may meet. */
#include "trees.h"

/* Adds the votes of one row to y. Returns the bits of all compared features, joined by "or". */
BT_INLINE int32_t bt_trees_walk(const bt_trees_compact_f32 *p, const float *row, const BT_FLASH int16_t *nodes,
                                const BT_FLASH int16_t *roots, const BT_FLASH float *votes, float *y)
{
    int32_t signs = 0;
    for (int32_t i = 0; i < p->trees; i++) {
        const BT_FLASH int16_t *at = nodes + (uint16_t)roots[i];
        const BT_FLASH int16_t *list;
        int32_t head, feature, bits, vote;
        for (;;) {
            head = *at;
            at += 2;
            __asm__("" : "+r"(at)); /* so that compilers keep one address */
            feature = head >> p->shift;
            if (feature < 0)
                break;
            bits = bt_trees_bits(row + feature);
            signs |= bits;
            if (bits > (int32_t)((uint32_t)(uint16_t)at[-1] << 16))
                at += head & ((1 << p->shift) - 1);
        }
        list = nodes + (head & 0x7fff);
        do {
            vote = *list++;
            y[(vote & 0x7fff) >> p->vote_bits] += votes[vote & ((1 << p->vote_bits) - 1)];
        } while (vote >= 0);
    }
    return signs;
}

/* The bits of a number without a sign are its key, as are those of NaN. So a row is read as it is until a feature has
 * a sign; then its keys are computed, and it starts again. */
BT_KERNEL void bt_trees_f32_compact(const bt_trees_compact_f32 *p, const float *x, const BT_FLASH int16_t *nodes,
                                    const BT_FLASH int16_t *roots, const BT_FLASH float *votes, float *y,
                                    float *keys)
{
    for (int32_t n = 0; n < p->rows; n++, x += p->features, y += p->targets)
        for (int32_t as_it_is = !p->has_signs;; as_it_is = 0) {
            int32_t signs;
            for (int32_t t = 0; t < p->targets; t++)
                y[t] = 0.0f;
            for (int32_t f = 0; f < p->features && !as_it_is; f++)
                *(bt_trees_word *)(void *)(keys + f) = bt_trees_key(x + f);
            signs = bt_trees_walk(p, as_it_is ? x : keys, nodes, roots, votes, y);
            if (!as_it_is || signs >= 0)
                break;
        }
}
