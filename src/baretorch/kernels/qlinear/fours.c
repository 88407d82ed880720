/* qlinear for cores that multiply 32 bits and have no DSP extension (Armv6-M, Armv7-M, RV32): four rows at a time, so
 * that an input is loaded once for four products. Weights are bytes with 128 added, because Armv6-M loads only unsigned
 * bytes from an address and a literal offset; the sum of the inputs, made once, takes that back. */
#if defined(__ARM_ARCH_6M__)
#include "fours_v6m.h"
#else
#include "fours_any.h"
#endif

BT_KERNEL void bt_qlinear_fours(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++) {
        int32_t sum = 0;
        for (int32_t i = 0; i < p->in; i++)
            sum += x[i];
        bt_qlinear_fours_state s = {
            .x = x,
            .w = weight,
            .terms = terms,
            .y = y,
            .end = y + p->out,
            .in = p->in,
            .start = sum * -128,
            .round = (1 << 15) + (p->zero - p->lo) * (1 << 16),
            .lo = p->lo,
            .range = p->hi - p->lo,
        };
        bt_qlinear_fours_run(&s);
        x += p->in;
        y += p->out;
    }
}
