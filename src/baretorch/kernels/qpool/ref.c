#include "walk.h"

BT_INLINE void bt_qavg_each(const bt_qavg_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    for (int32_t c = 0; c < w->channels; c++)
        bt_qavg_channel(p, w, c, y);
}

BT_INLINE void bt_qmax_each(const bt_qmax_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    (void)p;
    for (int32_t c = 0; c < w->channels; c++)
        bt_qmax_channel(w, c, y);
}

BT_QPOOL(bt_qavg_pool2d_ref, bt_qavg_pool2d, bt_qavg_each)
BT_QPOOL(bt_qmax_pool2d_ref, bt_qmax_pool2d, bt_qmax_each)
