#include "lookup.h"

BT_KERNEL void bt_lookup_ref(const bt_lookup *p, const int8_t *x, const BT_FLASH int8_t *table, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = table[(uint8_t)x[i]];
}
