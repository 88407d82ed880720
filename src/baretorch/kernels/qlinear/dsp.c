/* qlinear for cores with the DSP extension (Cortex-M4, M7, M33): four rows at a time, as in dsp_rows.h, whose loop goes on
 * through 16 inputs here, with the weights of four in one load: 66 instructions for 64 products.
 *
 * A row of inputs is read until its last outputs are written: the output may end where that row begins. */
#include "qlinear.h"

#include "../dsp_rows.h"

#define BT_FOUR 64 /* bytes of code for four inputs */

/* sums[k] += row k, over four inputs a piece. The first iteration skips the surplus. r2-r5 hold weights; r7 may
 * be the frame pointer. */
BT_INLINE const int32_t *bt_qlinear_part(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t fours)
{
    const int32_t turns = (fours + 3) >> 2;
    register const int8_t *r0 __asm__("r0") = x;
    register const int32_t *r1 __asm__("r1") = w;
    register int32_t low0 __asm__("r8") = sums[0];
    register int32_t both0 __asm__("r9") = sums[0];
    register int32_t low1 __asm__("r10") = sums[2];
    register int32_t both1 __asm__("r11") = sums[2];
    register int32_t even __asm__("r12") = (4 * turns - fours) * BT_FOUR;
    register int32_t n __asm__("r6") = turns;
#define BT_FOUR_INPUTS                                                                                                 \
    "ldmia.w r1!, {r2-r5}\n\t"                                                                                         \
    "ldr.w lr, [r0], #4\n\t"                                                                                           \
    "sxtb16 r12, lr\n\t"                                                                                               \
    "smlad r9, r2, r12, r9\n\t"                                                                                        \
    "sxtb16 r2, r2\n\t"                                                                                                \
    "smlad r11, r3, r12, r11\n\t"                                                                                      \
    "sxtb16 r3, r3\n\t"                                                                                                \
    "smlad r8, r2, r12, r8\n\t"                                                                                        \
    "sxtb16 lr, lr, ror #8\n\t"                                                                                        \
    "smlad r10, r3, r12, r10\n\t"                                                                                      \
    "sxtb16 r2, r4\n\t"                                                                                                \
    "smlad r9, r4, lr, r9\n\t"                                                                                         \
    "sxtb16 r3, r5\n\t"                                                                                                \
    "smlad r11, r5, lr, r11\n\t"                                                                                       \
    "smlad r8, r2, lr, r8\n\t"                                                                                         \
    "smlad r10, r3, lr, r10\n\t"
    __asm__ volatile("add pc, r12\n\t"
                     "nop\n"
                     "1:\n\t" BT_FOUR_INPUTS BT_FOUR_INPUTS BT_FOUR_INPUTS BT_FOUR_INPUTS "subs r6, r6, #1\n\t"
                     "bne 1b"
                     : "+&r"(low0), "+&r"(both0), "+&r"(low1), "+&r"(both1), "+&r"(r0), "+&r"(r1), "+&r"(n), "+&r"(even)
                     :
                     : "r2", "r3", "r4", "r5", "lr", "cc", "memory");
#undef BT_FOUR_INPUTS
    sums[0] = low0;
    sums[1] += (both0 - low0) >> 8;
    sums[2] = low1;
    sums[3] += (both1 - low1) >> 8;
    return r1;
}

BT_KERNEL void bt_qlinear_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y)
{
    const int32_t fours = (p->in + 3) >> 2;
    for (int32_t b = 0; b < p->batch; b++) {
        const int32_t *w = weight;
        int32_t o = 0;
        do {
            int32_t sums[4];
            BT_UNROLL_8
            for (int32_t k = 0; k < 4; k++)
                sums[k] = p->out % 4 == 0 || o + k < p->out ? bias[o + k] : 0;
            for (int32_t at = 0; at < fours; at += BT_DSP_PART) {
                const int32_t part = fours - at < BT_DSP_PART ? fours - at : BT_DSP_PART;
                w = bt_qlinear_part(sums, x + 4 * at, w, part);
            }
            BT_UNROLL_8
            for (int32_t k = 0; k < 4; k++) {
                if (p->out % 4 == 0 || o + k < p->out)
                    y[o + k] = bt_requantize(sums[k], multiplier[o + k], p->shift, p->zero, p->lo, p->hi);
            }
            o += 4;
        } while (o < p->out);
        x += p->in;
        y += p->out;
    }
}

#undef BT_FOUR
