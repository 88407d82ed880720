/* y[i] = x[i - before] where that is inside x, else value; a negative `before` crops. */
#ifndef BT_PAD_H
#define BT_PAD_H

#include "../bt.h"

typedef struct {
    int32_t in[4];
    int32_t out[4];
    int32_t before[4];
    int64_t value; /* the bits of one element */
} bt_pad;

#ifndef BT_INLINE_KERNELS
void bt_pad_8_ref(const bt_pad *p, const void *x, void *y);
void bt_pad_16_ref(const bt_pad *p, const void *x, void *y);
void bt_pad_32_ref(const bt_pad *p, const void *x, void *y);
void bt_pad_64_ref(const bt_pad *p, const void *x, void *y);
#endif

#endif
