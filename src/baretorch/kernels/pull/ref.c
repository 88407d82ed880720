#include "pull.h"

BT_KERNEL void bt_pull_ref(const bt_pull *p, const bt_row_source *x, void *y)
{
    x->rows(x->context, p->first, p->count, y);
}
