#include "pull.h"

BT_KERNEL void bt_pull_ref(const bt_pull *p, const bt_rows *x, void *y)
{
    x->rows(x->context, p->first, p->count, y);
}
