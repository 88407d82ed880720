/* As depthwise_triples.c, with weights of 4 bits, which become bytes in scratch first: 6 instructions for each. */
#include "../int4.h"
#include "depthwise_triples.h"

BT_KERNEL void bt_qconv2d_depthwise4_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight,
                                             const int32_t *terms, int8_t *y, void *scratch)
{
    const int32_t count = p->in * p->kernel_h * p->kernel_w;
    int8_t *const bytes = (int8_t *)scratch;
    bt_int4_expand(bytes, weight, count);
    bt_qconv2d_depthwise_triples_run(p, x, bytes, terms, y, bytes + ((count + 3) & ~3));
}
