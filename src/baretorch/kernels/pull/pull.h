/* y = rows of the model's input, from the caller */
#ifndef BT_PULL_H
#define BT_PULL_H

#include "../bt.h"
#include "rows.h"

typedef struct {
    int32_t first;
    int32_t count;
} bt_pull;

#ifndef BT_INLINE_KERNELS
void bt_pull_ref(const bt_pull *p, const bt_row_source *x, void *y);
#endif

#endif
