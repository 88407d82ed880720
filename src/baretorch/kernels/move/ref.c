#include "move.h"

BT_KERNEL void bt_move_ref(const bt_move *p, const void *x, void *y)
{
    for (int32_t o = 0; o < p->outer; o++) {
        const uint8_t *from = (const uint8_t *)x + p->x_start + o * p->x_outer;
        uint8_t *to = (uint8_t *)y + p->y_start + o * p->y_outer;
        for (int32_t i = 0; i < p->count; i++) {
            __builtin_memcpy(to, from, (size_t)p->bytes);
            from += p->x_step;
            to += p->y_step;
        }
    }
}
