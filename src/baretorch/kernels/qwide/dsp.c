/* Sums of int16 for cores with the DSP extension (Cortex-M4, M7, M33): two elements at a time, each by one dual
 * multiply. */
#include "qwide.h"

#include "../dsp.h"

BT_INLINE int32_t bt_qadd16_pair(const bt_qadd16 *p, int32_t pair, int32_t factors, int32_t half)
{
    int32_t sum;
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(factors), "r"(half));
    return bt_clamp_i32(sum >> p->shift, p->lo, p->hi);
}

BT_INLINE void bt_qadd16_row(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y, int32_t count)
{
    const int32_t factors = (int32_t)((uint32_t)(p->a_factor & 0xffff) | (uint32_t)p->b_factor << 16);
    const int32_t half = INT32_C(1) << (p->shift - 1);
    for (const int16_t *end = y + (count & ~1); y != end; a += 2, b += 2, y += 2) {
        int32_t a2, b2;
        __builtin_memcpy(&a2, a, 4);
        __builtin_memcpy(&b2, b, 4);
        y[0] = (int16_t)bt_qadd16_pair(p, bt_low_pair(a2, b2), factors, half);
        y[1] = (int16_t)bt_qadd16_pair(p, bt_high_pair(a2, b2), factors, half);
    }
    if (count & 1)
        *y = bt_qadd16_one(p, *a, *b);
}

BT_KERNEL void bt_qadd16_dsp(const bt_qadd16 *p, const int16_t *a, const int16_t *b, int16_t *y)
{
    for (int32_t i = 0; i < p->shape[0]; i++) {
        for (int32_t j = 0; j < p->shape[1]; j++) {
            for (int32_t k = 0; k < p->shape[2]; k++, y += p->shape[3])
                bt_qadd16_row(p, a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2],
                              b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2], y, p->shape[3]);
        }
    }
}
