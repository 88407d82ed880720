/* qconv2d16 of single pixels, as linear layers are, for cores with the DSP extension (Cortex-M4, M7, M33): four channels
 * at a time. 24 instructions for 16 products. */
#include "qconv2d16.h"

#define BT_ROW(sum)                                                                                                    \
    "ldr %[u], [%[w]], #4\n\t"                                                                                         \
    "sxtb16 %[part], %[u]\n\t"                                                                                         \
    "smlad %[" sum "], %[part], %[x0], %[" sum "]\n\t"                                                                 \
    "sxtb16 %[part], %[u], ror #8\n\t"                                                                                 \
    "smlad %[" sum "], %[part], %[x1], %[" sum "]\n\t"

/* sums[k] += row k of four, over `fours` fours of inputs; returns where the next rows begin. */
BT_INLINE const int32_t *bt_qconv2d16_four(int32_t sums[4], const int16_t *x, const int32_t *w, int32_t fours)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3], x0, x1, u, part;
    __asm__ volatile("1:\n\t"
                     "ldr %[x0], [%[x]], #4\n\t"
                     "ldr %[x1], [%[x]], #4\n\t" BT_ROW("a") BT_ROW("b") BT_ROW("c") BT_ROW("d")
                     "subs %[n], %[n], #1\n\t"
                     "bne 1b"
                     : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [d] "+&r"(d), [x] "+&r"(x), [w] "+&r"(w),
                       [n] "+&r"(fours), [x0] "=&r"(x0), [x1] "=&r"(x1), [u] "=&r"(u), [part] "=&r"(part)
                     :
                     : "cc", "memory");
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    return w;
}

BT_KERNEL void bt_qconv2d16_rows_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *weight, const int32_t *bias,
                                     const int32_t *multiplier, int16_t *y)
{
    for (int32_t pixels = p->batch * p->in_h * p->in_w; pixels > 0; pixels--, x += p->in, y += p->out) {
        const int32_t *w = weight;
        for (int32_t o = 0; o < p->out; o += 4) {
            int32_t sums[4] = { 0, 0, 0, 0 };
            w = bt_qconv2d16_four(sums, x, w, p->in / 4);
            BT_UNROLL_8
            for (int32_t k = 0; k < 4; k++) {
                if (p->out % 4 == 0 || o + k < p->out) {
                    const int32_t acc = (sums[k] + bias[o + k]) * (int32_t)(1 << p->shift);
                    y[o + k] = (int16_t)bt_clamp_i32(bt_scale(acc, multiplier[o + k], 0), p->lo, p->hi);
                }
            }
        }
    }
}
