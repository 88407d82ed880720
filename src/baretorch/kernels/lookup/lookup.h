/* y[i] = table[x[i]], x taken as an unsigned byte */
#ifndef BT_LOOKUP_H
#define BT_LOOKUP_H

#include "../bt.h"

typedef struct {
    int32_t count;
} bt_lookup;

#ifndef BT_INLINE_KERNELS
void bt_lookup_ref(const bt_lookup *p, const int8_t *x, const BT_FLASH int8_t *table, int8_t *y);
void bt_lookup_mve(const bt_lookup *p, const int8_t *x, const int8_t *table, int8_t *y);
#endif

#endif
