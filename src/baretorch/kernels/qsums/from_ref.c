#include "qsums.h"

BT_KERNEL void bt_qfrom_sums_ref(const bt_qfrom_sums *p, const int32_t *sums, const BT_FLASH int32_t *multiplier,
                                 int8_t *y)
{
    for (int32_t n = 0; n < p->batch; n++, sums += p->in_h * p->in_w * p->stride) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += p->stride) {
                const int32_t *const window = sums + (h * p->pool_h * p->in_w + w * p->pool_w) * p->stride;
                for (int32_t o = 0; o < p->out; o++) {
                    int32_t max = window[o];
                    for (int32_t i = 1; i < p->pool_h * p->pool_w; i++) {
                        const int32_t sum = window[(i / p->pool_w * p->in_w + i % p->pool_w) * p->stride + o];
                        max = sum > max ? sum : max;
                    }
                    y[o] = bt_requantize(max, multiplier[o], p->shift, p->zero, p->lo, p->hi);
                }
            }
        }
    }
}
