/* Rows of weights of 4 bits in groups of 32 inputs. What a group adds to a row is multiplied by a whole number, its
 * factor for that row, so that the sum is that of weights of 8 bits, to the last bit. */
#ifndef BT_INT4_GROUPS_H
#define BT_INT4_GROUPS_H

#include "int4.h"
#include "qlinear/qlinear.h"

#define BT_INT4_GROUP 32

/* How many inputs the group that begins at i has. */
BT_INLINE int32_t bt_int4_in_group(int32_t in, int32_t i)
{
    return in - i < BT_INT4_GROUP ? in - i : BT_INT4_GROUP;
}

/* sums[k] = row k of some, over n inputs; gives where their next group begins. `start` is -8 times the sum of the
 * inputs. */
typedef const void *bt_int4_group(int32_t *sums, const int8_t *x, const void *w, int32_t n, int32_t start);

/* All rows, `together` at a time, which is a literal. factors: [out / together][groups][together]; starts: room for a
 * number for each group. */
BT_INLINE void bt_int4_groups(bt_int4_group *group, bt_int4_sum *sum, int32_t together, const bt_qlinear *p,
                              const int8_t *x, const void *weight, const uint8_t *factors, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y, int32_t *starts)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        const void *w = weight;
        const uint8_t *factor = factors;
        for (int32_t i = 0; i < p->in; i += BT_INT4_GROUP)
            starts[i / BT_INT4_GROUP] = -8 * sum(x + i, bt_int4_in_group(p->in, i));
        for (int32_t o = 0; o < p->out; o += together) {
            int32_t sums[4] = { 0, 0, 0, 0 };
            for (int32_t i = 0; i < p->in; i += BT_INT4_GROUP, factor += together) {
                int32_t parts[4];
                w = group(parts, x + i, w, bt_int4_in_group(p->in, i), starts[i / BT_INT4_GROUP]);
                BT_UNROLL_4
                for (int32_t k = 0; k < together; k++)
                    sums[k] += parts[k] * factor[k];
            }
            BT_UNROLL_4
            for (int32_t k = 0; k < together; k++)
                if (o + k < p->out)
                    y[o + k] = bt_requantize(sums[k] + bias[o + k], multiplier[o + k], p->shift, p->zero, p->lo, p->hi);
        }
    }
}

#endif
