/* qattention for cores with the DSP extension (Cortex-M4, M7, M33): four channels at a time. */
#include "rows.h"

#include "../dsp.h"

BT_INLINE int32_t bt_qattention_less(int32_t zero)
{
    return (int32_t)((uint32_t)(-zero & 0xffff) * 0x00010001u);
}

BT_INLINE int32_t bt_qattention_dot_dsp(const bt_qattention *p, const int8_t *q, const int8_t *k)
{
    const int32_t q_less = bt_qattention_less(p->q_zero), k_less = bt_qattention_less(p->k_zero);
    const int8_t *const end = q + (p->width & ~3);
    int32_t sum = 0;
    while (q != end) {
        const int32_t q4 = bt_load4(q), k4 = bt_load4(k);
        sum = bt_dual(bt_even_plus(q_less, q4), bt_even_plus(k_less, k4), sum);
        sum = bt_dual(bt_odd_plus(q_less, q4), bt_odd_plus(k_less, k4), sum);
        q += 4;
        k += 4;
    }
    for (int32_t e = 0; e < (p->width & 3); e++)
        sum += (q[e] - p->q_zero) * (k[e] - p->k_zero);
    return sum;
}

/* sum + the product of the high halfword of a and the low one of b */
BT_INLINE int32_t bt_high_low(int32_t a, int32_t b, int32_t sum)
{
    __asm__("smlatb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

BT_INLINE void bt_qattention_mix_dsp(const bt_qattention *p, int32_t keys, const int32_t *w, int32_t total,
                                     const int8_t *v, int8_t *y)
{
    int32_t e = 0;
    for (; e < (p->v_width & ~3); e += 4) {
        int32_t sums[4];
        BT_UNROLL_8
        for (int32_t i = 0; i < 4; i++)
            sums[i] = -total * p->v_zero;
        const int8_t *row = v + e;
        for (int32_t j = 0; j < keys; j++, row += p->v_step[3]) {
            const int32_t v4 = bt_load4(row), even = bt_even_bytes(v4), odd = bt_odd_bytes(v4);
            sums[0] = bt_low(even, w[j], sums[0]);
            sums[1] = bt_low(odd, w[j], sums[1]);
            sums[2] = bt_high_low(even, w[j], sums[2]);
            sums[3] = bt_high_low(odd, w[j], sums[3]);
        }
        BT_UNROLL_8
        for (int32_t i = 0; i < 4; i++)
            y[e + i] = bt_requantize(sums[i], p->multiplier, p->shift, p->zero, -128, 127);
    }
    for (; e < p->v_width; e++)
        bt_qattention_channel(p, keys, w, total, v, y, e);
}

BT_QATTENTION_KERNELS(dsp, bt_qattention_dot_dsp, bt_qattention_mix_dsp)
