/* qconv2d, depthwise, three rows of the output at a time; see depthwise_triples.h. */
#include "depthwise_triples.h"

/* scratch, in words: two for each row of the kernel in each column that a window reaches, two more; one a tap, taps
 * rounded up to an even number; two; and three for each row of the kernel */
BT_KERNEL void bt_qconv2d_depthwise_triples(const bt_qconv2d *p, const int8_t *x, const int8_t *weight,
                                            const int32_t *terms, int8_t *y, void *scratch)
{
    bt_qconv2d_depthwise_triples_run(p, x, weight, terms, y, scratch);
}
