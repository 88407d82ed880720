/* softmax:     y[o, a, i] = e^(x[o, a, i] - m) / sum over a of e^(x[o, a, i] - m), where m is the maximum over a
 * log_softmax: y[o, a, i] = the logarithm of that */
#ifndef BT_SOFTMAX_H
#define BT_SOFTMAX_H

#include "../bt.h"

typedef struct {
    int32_t outer;
    int32_t length;
    int32_t inner;
} bt_softmax_f32;

#ifndef BT_INLINE_KERNELS
/* x and y may be the same. */
void bt_softmax_f32_ref(const bt_softmax_f32 *p, const float *x, float *y);
void bt_log_softmax_f32_ref(const bt_softmax_f32 *p, const float *x, float *y);
#endif

#endif
