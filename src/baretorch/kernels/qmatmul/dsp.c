/* qmatmul for cores with the DSP extension (Cortex-M4, M7, M33). A row of a is widened once, its zero point taken off, as
 * pairs of halfwords; the columns of b run over it, two products an instruction. */
#include "qmatmul.h"

#include "../dsp.h"

/* A row of a; for contiguous columns in the order 0, 2, 1, 3 of each four. */
BT_INLINE void bt_qmatmul_row(const bt_qmatmul *p, const int8_t *a, int16_t *row)
{
    for (int32_t l = 0; l < p->k; l++) {
        const int32_t at = p->b_step[3] == 1 ? (l & ~3) + ((l & 1) << 1) + ((l >> 1) & 1) : l;
        row[at] = (int16_t)(a[l * p->a_step[4]] - p->a_zero);
    }
}

/* A contiguous column: 8 instructions for four products. */
BT_INLINE int32_t bt_qmatmul_column(const bt_qmatmul *p, const int32_t *row, const int8_t *b)
{
    const int32_t less = (int32_t)((uint32_t)(-p->b_zero & 0xffff) * 0x00010001u);
    int32_t sum = 0, l = 0;
    for (; l + 4 <= p->k; l += 4, row += 2) {
        const int32_t four = bt_load4(b + l);
        sum = bt_dual(bt_even_plus(less, four), row[0], sum);
        sum = bt_dual(bt_odd_plus(less, four), row[1], sum);
    }
    for (; l < p->k; l++)
        sum += (b[l] - p->b_zero) * ((const int16_t *)row)[((l & 1) << 1) + ((l >> 1) & 1)];
    return sum;
}

/* sum + the product of the high halfword of a and the low one of b */
BT_INLINE int32_t bt_qmatmul_high(int32_t a, int32_t b, int32_t sum)
{
    __asm__("smlatb %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* Four columns, where rows are contiguous: 11 instructions for four products. */
BT_INLINE void bt_qmatmul_four(const bt_qmatmul *p, const int16_t *row, const int8_t *b, int32_t sums[4])
{
    const int32_t less = (int32_t)((uint32_t)(-p->b_zero & 0xffff) * 0x00010001u);
    int32_t c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    for (int32_t l = 0; l < p->k; l++, b += p->b_step[3]) {
        const int32_t four = bt_load4(b), x = row[l];
        const int32_t even = bt_even_plus(less, four), odd = bt_odd_plus(less, four);
        c0 = bt_low(even, x, c0);
        c1 = bt_low(odd, x, c1);
        c2 = bt_qmatmul_high(even, x, c2);
        c3 = bt_qmatmul_high(odd, x, c3);
    }
    sums[0] = c0;
    sums[1] = c1;
    sums[2] = c2;
    sums[3] = c3;
}

BT_INLINE void bt_qmatmul_one_dsp(const bt_qmatmul *p, int16_t *row, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->m; i++, a += p->a_step[3], y += p->y_step[3]) {
        bt_qmatmul_row(p, a, row);
        for (int32_t j = 0; j < p->n;) {
            int32_t sums[4], made = 1;
            if (p->b_step[3] == 1) {
                sums[0] = bt_qmatmul_column(p, (const int32_t *)(const void *)row, b + j * p->b_step[4]);
            } else {
                made = 4;
                j = j + 4 <= p->n ? j : p->n - 4; /* the last four may overlap those before */
                bt_qmatmul_four(p, row, b + j, sums);
            }
            for (int32_t k = 0; k < made; k++, j++)
                y[j * p->y_step[4]] = bt_requantize(sums[k], p->multiplier, p->shift, p->zero, p->lo, p->hi);
        }
    }
}

BT_KERNEL void bt_qmatmul_dsp(const bt_qmatmul *p, const int8_t *a, const int8_t *b, int8_t *y, void *scratch)
{
    BT_EACH_MATRIX(bt_qmatmul_one_dsp, p, (int16_t *)scratch);
}
