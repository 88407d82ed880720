/* qlinear with weights of 4 bits in groups and fours of inputs, for cores with the DSP extension. */
#include "../dsp_rows.h"
#include "../int4_dsp.h"
#include "../int4_groups.h"

BT_INLINE const void *bt_int4_group_dsp(int32_t *sums, const int8_t *x, const void *w, int32_t n, int32_t start)
{
    return bt_int4_four(sums, x, (const int32_t *)w, n >> 2, start);
}

BT_KERNEL void bt_qlinear4_groups_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight,
                                      const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                      int8_t *y, void *scratch)
{
    bt_int4_groups(bt_int4_group_dsp, bt_int4_sum_dsp, 4, p, x, weight, factors, bias, multiplier, y,
                   (int32_t *)scratch);
}

/* Two inputs of two rows as a word of dsp_rows.h: a nibble of each byte, `at` bits up, less 8, times its row's factor.
 * 8 is added to all of them. */
BT_INLINE int32_t bt_int4_groups_word(uint32_t word, int32_t at, uint32_t first, uint32_t second)
{
    const uint32_t u = word >> at, less = 8 * (first + second);
    const uint32_t low = (u & 15) * first + (u >> 8 & 15) * second - less;
    const uint32_t high = (u >> 16 & 15) * first + (u >> 24 & 15) * second - less;
    return (int32_t)((low & 0xffff) | high << 16);
}

/* Each four rows become weights of 8 bits once, for all rows of inputs: 36 instructions for 8 weights. */
BT_KERNEL void bt_qlinear4_groups_rows_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight,
                                           const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                           int8_t *y, void *scratch)
{
    const uint8_t *factor = factors;
    for (int32_t o = 0; o < p->out; o += 4) {
        const int8_t *from = x;
        int32_t *to = (int32_t *)scratch;
        for (int32_t i = 0; i < p->in; i += BT_INT4_GROUP, factor += 4) {
            const uint32_t f0 = factor[0], f1 = 256u * factor[1], f2 = factor[2], f3 = 256u * factor[3];
            for (int32_t n = bt_int4_in_group(p->in, i); n > 0; n -= 2) {
                const uint32_t word = (uint32_t)*weight++ ^ 0x80008000u;
                *to++ = bt_int4_groups_word(word, 0, f0, f1);
                *to++ = bt_int4_groups_word(word, 4, f2, f3);
            }
        }
        for (int32_t b = 0; b < p->batch; b++, from += p->in) {
            int32_t sums[4] = { 0, 0, 0, 0 };
            bt_dsp_four(sums, from, (const int32_t *)scratch, p->in);
            BT_UNROLL_4
            for (int32_t k = 0; k < 4; k++)
                if (p->out % 4 == 0 || o + k < p->out)
                    y[b * p->out + o + k] =
                        bt_requantize(sums[k] + bias[o + k], multiplier[o + k], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
