/* Norms of rows for cores with the DSP extension (Cortex-M4, M7, M33): 9 instructions for the sums of four numbers, and
 * 8 for each result, because what is shifted and multiplied has its high word where SMMUL leaves it. */
#include "inverse.h"

#include "../dsp.h"
#include "../int8_dsp.h"

/* Sum and squares of a row, less the zero point. */
BT_INLINE uint32_t bt_qnorm_sums(const bt_qnorm *p, const int8_t *x, int32_t *sum)
{
    const int32_t less = (int32_t)((uint32_t)(-p->x_zero & 0xffff) * 0x00010001u), ones = 0x00010001;
    uint32_t squares = 0;
    const int8_t *end = x + (p->depth & ~3), *last = x + p->depth;
    *sum = 0;
    for (; x != end; x += 4) {
        const int32_t four = bt_load4(x), even = bt_even_plus(less, four), odd = bt_odd_plus(less, four);
        *sum = bt_dual(odd, ones, bt_dual(even, ones, *sum));
        squares = (uint32_t)bt_dual(odd, odd, bt_dual(even, even, (int32_t)squares));
    }
    for (; x != last; x++) {
        const int32_t v = *x - p->x_zero;
        *sum += v;
        squares += (uint32_t)(v * v);
    }
    return squares;
}

/* The high word of a product, rounded down. */
BT_INLINE int32_t bt_high_word(int32_t a, int32_t b)
{
    int32_t high;
    __asm__("smmul %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
}

BT_KERNEL void bt_qnorm_dsp(const bt_qnorm *p, const int8_t *x, const int32_t *weight, const int32_t *bias, int8_t *y)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->depth, y += p->depth) {
        int32_t sum, factor;
        const uint32_t squares = bt_qnorm_sums(p, x, &sum);
        sum = p->centred ? sum : 0;
        const int32_t up = 23 - bt_qnorm_spread(p, p->depth, sum, squares, &factor);
        const uint32_t times = (uint32_t)p->depth << up;
        const uint32_t plus = (uint32_t)(-p->depth * p->x_zero - sum) << up;
        factor *= 512;
        BT_UNROLL_4
        for (int32_t k = 0; k < p->depth; k++) {
            const int32_t normal = bt_high_word((int32_t)((uint32_t)(int32_t)x[k] * times + plus), factor);
            y[k] = (int8_t)bt_clamp_i32(bt_scale_dsp(normal, weight[k], bias[k]) >> 8, -128, 127);
        }
    }
}
