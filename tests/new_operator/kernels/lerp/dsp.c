/* For cores with the DSP extension: both products at once. */
#include "lerp.h"

BT_KERNEL void bt_qlerp_dsp(const bt_qlerp *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        int32_t pair, factors, sum;
        __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"((int32_t)a[i]), "r"((int32_t)b[i]));
        __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(factors) : "r"(p->a_factor), "r"(p->b_factor));
        __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(factors), "r"(p->offset));
        y[i] = (int8_t)bt_clamp_i32(sum >> p->shift, -128, 127);
    }
}
