/* Rows of int8 weights times int8 inputs on cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * Four rows at a time. Weights of two rows share a halfword, 256 * high + low. Its low byte, sign-extended by SXTB16,
 * gives the low row's products; the halfword as it is gives 256 times the high row's plus the low row's, so one
 * extension feeds two dual multiplies. The high row comes back by subtraction, exactly, as long as it stays below 2^23:
 * a long row is summed in parts of 504 inputs. 19 instructions for 16 products. */
#ifndef BT_DSP_ROWS_H
#define BT_DSP_ROWS_H

#include "int8.h"

#define BT_DSP_PART 126 /* fours of inputs whose sum cannot reach 2^23 */

/* sums[k] += row k, over four inputs a turn */
BT_INLINE void bt_dsp_part(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t fours)
{
    int32_t low0 = 0, both0 = 0, low1 = 0, both1 = 0;
    int32_t even, odd, w0, w1, part;
    __asm__ volatile("1:\n\t"
                     "ldrd %[w0], %[w1], [%[w]], #8\n\t"
                     "ldr %[odd], [%[x]], #4\n\t"
                     "sxtb16 %[even], %[odd]\n\t"
                     "sxtb16 %[part], %[w0]\n\t"
                     "smlad %[both1], %[w1], %[even], %[both1]\n\t"
                     "sxtb16 %[odd], %[odd], ror #8\n\t"
                     "smlad %[low0], %[part], %[even], %[low0]\n\t"
                     "sxtb16 %[part], %[w1]\n\t"
                     "smlad %[both0], %[w0], %[even], %[both0]\n\t"
                     "ldrd %[w0], %[w1], [%[w]], #8\n\t"
                     "smlad %[low1], %[part], %[even], %[low1]\n\t"
                     "sxtb16 %[part], %[w0]\n\t"
                     "smlad %[both1], %[w1], %[odd], %[both1]\n\t"
                     "smlad %[low0], %[part], %[odd], %[low0]\n\t"
                     "sxtb16 %[part], %[w1]\n\t"
                     "smlad %[both0], %[w0], %[odd], %[both0]\n\t"
                     "smlad %[low1], %[part], %[odd], %[low1]\n\t"
                     "subs %[n], %[n], #1\n\t"
                     "bne 1b"
                     : [low0] "+&r"(low0), [both0] "+&r"(both0), [low1] "+&r"(low1), [both1] "+&r"(both1), [x] "+&r"(x),
                       [w] "+&r"(w), [n] "+&r"(fours), [even] "=&r"(even), [odd] "=&r"(odd), [w0] "=&r"(w0),
                       [w1] "=&r"(w1), [part] "=&r"(part)
                     :
                     : "cc", "memory");
    sums[0] += low0;
    sums[1] += (both0 - low0) >> 8;
    sums[2] += low1;
    sums[3] += (both1 - low1) >> 8;
}

/* sums[k] += row k of four; returns where the next four rows begin. Reads up to three bytes after x. */
BT_INLINE const int32_t *bt_dsp_four(int32_t sums[4], const int8_t *x, const int32_t *w, int32_t in)
{
    const int32_t fours = (in + 3) >> 2;
    for (int32_t at = 0; at < fours; at += BT_DSP_PART) {
        const int32_t part = fours - at < BT_DSP_PART ? fours - at : BT_DSP_PART;
        bt_dsp_part(sums, x + 4 * at, w, part);
        w += 4 * part;
    }
    return w;
}

#endif
