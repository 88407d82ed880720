/* Sums and products for cores with the DSP extension (Cortex-M4, M7, M33): four elements at a time. */
#include "qbinary.h"

#include "../dsp.h"

/* sum + both products of halfwords; the sum stays as it is for the next four */
BT_INLINE int32_t bt_dual_from(int32_t a, int32_t b, int32_t sum)
{
    int32_t result;
    __asm__("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

BT_INLINE int8_t bt_qadd_pair(const bt_qadd *p, int32_t pair, int32_t factors)
{
    return (int8_t)bt_clamp_i32(bt_dual_from(pair, factors, p->offset) >> p->shift, p->lo, p->hi);
}

BT_INLINE void bt_qadd_row(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t count)
{
    const int32_t factors = bt_low_pair(p->a_factor, p->b_factor);
    const int8_t *end = y + (count & ~3);
    while (y != end) {
        const int32_t a4 = bt_load4(a), b4 = bt_load4(b);
        const int32_t a_even = bt_even_bytes(a4), b_even = bt_even_bytes(b4);
        const int32_t a_odd = bt_odd_bytes(a4), b_odd = bt_odd_bytes(b4);
        y[0] = bt_qadd_pair(p, bt_low_pair(a_even, b_even), factors);
        y[1] = bt_qadd_pair(p, bt_low_pair(a_odd, b_odd), factors);
        y[2] = bt_qadd_pair(p, bt_high_pair(a_even, b_even), factors);
        y[3] = bt_qadd_pair(p, bt_high_pair(a_odd, b_odd), factors);
        a += 4;
        b += 4;
        y += 4;
    }
    for (int32_t i = 0; i < (count & 3); i++)
        y[i] = bt_qadd_one(p, a[i], b[i]);
}

BT_INLINE int32_t bt_low_product(int32_t a, int32_t b)
{
    int32_t product;
    __asm__("smulbb %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

BT_INLINE int32_t bt_high_product(int32_t a, int32_t b)
{
    int32_t product;
    __asm__("smultt %0, %1, %2" : "=r"(product) : "r"(a), "r"(b));
    return product;
}

BT_INLINE int8_t bt_qmul_acc(const bt_qmul *p, int32_t acc)
{
    return bt_requantize(acc, p->multiplier, p->shift, p->zero, p->lo, p->hi);
}

BT_INLINE void bt_qmul_row(const bt_qmul *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t count)
{
    const int32_t a_less = bt_low_pair(-p->a_zero, -p->a_zero), b_less = bt_low_pair(-p->b_zero, -p->b_zero);
    const int8_t *end = y + (count & ~3);
    while (y != end) {
        const int32_t a4 = bt_load4(a), b4 = bt_load4(b);
        const int32_t a_even = bt_even_plus(a_less, a4), b_even = bt_even_plus(b_less, b4);
        const int32_t a_odd = bt_odd_plus(a_less, a4), b_odd = bt_odd_plus(b_less, b4);
        y[0] = bt_qmul_acc(p, bt_low_product(a_even, b_even));
        y[1] = bt_qmul_acc(p, bt_low_product(a_odd, b_odd));
        y[2] = bt_qmul_acc(p, bt_high_product(a_even, b_even));
        y[3] = bt_qmul_acc(p, bt_high_product(a_odd, b_odd));
        a += 4;
        b += 4;
        y += 4;
    }
    for (int32_t i = 0; i < (count & 3); i++)
        y[i] = bt_qmul_one(p, a[i], b[i]);
}

/* The outer three loops around rows. */
#define BT_ROWS(symbol, params, row)                                                                           \
    BT_KERNEL void symbol(const params *p, const int8_t *a, const int8_t *b, int8_t *y)                        \
    {                                                                                                          \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                              \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                          \
                for (int32_t k = 0; k < p->shape[2]; k++) {                                                    \
                    row(p, a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2],                         \
                        b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2], y, p->shape[3]);           \
                    y += p->shape[3];                                                                          \
                }                                                                                              \
    }

BT_ROWS(bt_qadd_dsp, bt_qadd, bt_qadd_row)
BT_ROWS(bt_qmul_dsp, bt_qmul, bt_qmul_row)

#undef BT_ROWS
