/* qlinear for cores with the DSP extension (Cortex-M4, M7, M33): four rows at a time, as in dsp_rows.h, whose loop goes on
 * through 16 inputs here: 70 instructions for 64 products.
 *
 * A row of inputs is read until its last outputs are written: the output may end where that row begins. */
#include "qlinear.h"

#include "../dsp_rows.h"

#define BT_FOUR 68 /* bytes of code for four inputs */

/* sums[k] += row k, over four inputs a piece. The first turn leaves out what would be too much. */
BT_INLINE void bt_qlinear_part(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t fours)
{
    int32_t low0 = sums[0], both0 = low0, low1 = sums[2], both1 = low1;
    int32_t turns = (fours + 3) >> 2, odd, w0, w1, part;
    int32_t even = (4 * turns - fours) * BT_FOUR + 1;
#define BT_FOUR_INPUTS                                                                                                 \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                                \
    "ldr.w %[odd], [%[x]], #4\n\t"                                                                                     \
    "sxtb16 %[even], %[odd]\n\t"                                                                                       \
    "sxtb16 %[part], %[w0]\n\t"                                                                                        \
    "smlad %[both1], %[w1], %[even], %[both1]\n\t"                                                                     \
    "sxtb16 %[odd], %[odd], ror #8\n\t"                                                                                \
    "smlad %[low0], %[part], %[even], %[low0]\n\t"                                                                     \
    "sxtb16 %[part], %[w1]\n\t"                                                                                        \
    "smlad %[both0], %[w0], %[even], %[both0]\n\t"                                                                     \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                                \
    "smlad %[low1], %[part], %[even], %[low1]\n\t"                                                                     \
    "sxtb16 %[part], %[w0]\n\t"                                                                                        \
    "smlad %[both1], %[w1], %[odd], %[both1]\n\t"                                                                      \
    "smlad %[low0], %[part], %[odd], %[low0]\n\t"                                                                      \
    "sxtb16 %[part], %[w1]\n\t"                                                                                        \
    "smlad %[both0], %[w0], %[odd], %[both0]\n\t"                                                                      \
    "smlad %[low1], %[part], %[odd], %[low1]\n\t"
    __asm__ volatile("adr.w %[part], 1f\n\t"
                     "add %[part], %[part], %[even]\n\t"
                     "bx %[part]\n\t"
                     ".p2align 2\n"
                     "1:\n\t" BT_FOUR_INPUTS BT_FOUR_INPUTS BT_FOUR_INPUTS BT_FOUR_INPUTS "subs %[n], %[n], #1\n\t"
                     "bne 1b"
                     : [low0] "+r"(low0), [both0] "+r"(both0), [low1] "+r"(low1), [both1] "+r"(both1), [x] "+r"(x),
                       [w] "+r"(w), [n] "+r"(turns), [even] "+r"(even), [odd] "=&r"(odd), [w0] "=&r"(w0),
                       [w1] "=&r"(w1), [part] "=&r"(part)
                     :
                     : "cc", "memory");
#undef BT_FOUR_INPUTS
    sums[0] = low0;
    sums[1] += (both0 - low0) >> 8;
    sums[2] = low1;
    sums[3] += (both1 - low1) >> 8;
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
                bt_qlinear_part(sums, x + 4 * at, w, part);
                w += 4 * part;
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
