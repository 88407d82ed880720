/* Sums for CV32E40P: 8 cycles for each. */
#include "qbinary.h"

#include "../xcv.h"

BT_INLINE void bt_qadd_row_xcv(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y, int32_t count)
{
    int32_t u, v;
    __asm__ volatile(BT_XCV_LOOP("%[n]", "8")
                     BT_XCV_LB("%[u]", "%[a]") BT_XCV_LB("%[v]", "%[b]") "mul %[u], %[u], %[a_factor]\n\t"
                     BT_XCV_MAC("%[u]", "%[v]", "%[b_factor]") BT_XCV_SHIFT("%[u]", "%[offset]", "%[shift]")
                     BT_XCV_MAX("%[u]", "%[u]", "%[lo]") BT_XCV_MIN("%[u]", "%[u]", "%[hi]") BT_XCV_SB("%[u]", "%[y]")
                     BT_XCV_LOOP_END
                     : [a] "+&r"(a), [b] "+&r"(b), [y] "+&r"(y), [u] "=&r"(u), [v] "=&r"(v)
                     : [n] "r"(count), [a_factor] "r"(p->a_factor), [b_factor] "r"(p->b_factor),
                       [offset] "r"(p->offset), [shift] "r"(p->shift), [lo] "r"(p->lo), [hi] "r"(p->hi)
                     : "memory");
}

BT_KERNEL void bt_qadd_xcv(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    for (int32_t i = 0; i < p->shape[0]; i++)
        for (int32_t j = 0; j < p->shape[1]; j++)
            for (int32_t k = 0; k < p->shape[2]; k++, y += p->shape[3])
                bt_qadd_row_xcv(p, a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2],
                                b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2], y, p->shape[3]);
}
