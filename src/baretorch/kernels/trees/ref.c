#include "trees.h"

BT_KERNEL void bt_trees_f32_ref(const bt_trees_f32 *p, const float *x, const int32_t BT_FLASH *nodes,
                                const int32_t BT_FLASH *roots, const int32_t BT_FLASH *starts,
                                const int32_t BT_FLASH *places, const float BT_FLASH *votes, float *y)
{
    const float start = p->aggregate == 0 ? 0.0f : p->aggregate == 1 ? BT_INF : -BT_INF;
    for (int32_t n = 0; n < p->rows; n++, x += p->features, y += p->targets) {
        for (int32_t t = 0; t < p->targets; t++)
            y[t] = start;
        for (int32_t i = 0; i < p->trees; i++) {
            int32_t at = roots[i];
            while (at >= 0) {
                const int32_t BT_FLASH *node = nodes + 4 * at;
                const int32_t key = bt_trees_key(x + (node[0] >> 1));
                at = key <= node[1] || (key == INT32_MAX && (node[0] & 1)) ? node[2] : node[3];
            }
            for (int32_t v = starts[~at]; v < starts[~at + 1]; v++) {
                float *sum = &y[places[v]];
                if (p->aggregate == 0)
                    *sum += votes[v];
                else if (p->aggregate == 1 ? votes[v] < *sum : votes[v] > *sum)
                    *sum = votes[v];
            }
        }
        for (int32_t t = 0; t < p->targets && p->aggregate != 0; t++)
            if (y[t] == start)
                y[t] = 0.0f;
    }
}
