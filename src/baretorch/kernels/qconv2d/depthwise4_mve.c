/* As depthwise_mve.c, with weights of 4 bits. Its constants are put together in scratch first. */
#include "../int4.h"
#include "depthwise_mve.h"

BT_KERNEL void bt_qconv2d_depthwise4_mve(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight,
                                         const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t taps = p->kernel_h * p->kernel_w;
    int32_t *const constants = (int32_t *)scratch;
    int32_t *to = constants;
    for (int32_t c = 0; c < p->in; c += 4, weight += 2 * taps, terms += 8) {
        bt_int4_expand((int8_t *)to, weight, 4 * taps);
        to += taps;
        for (int32_t i = 0; i < 8; i++)
            *to++ = terms[i];
    }
    bt_qconv2d_depthwise_shared_mve(p, x, constants, y, (int8_t *)to);
}
