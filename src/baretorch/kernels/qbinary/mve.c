/* qadd and qmul for Arm cores with Helium: four elements at a time. */
#include <arm_mve.h>

#include "qbinary.h"

/* 10 instructions for four sums. */
BT_INLINE void bt_qadd_row_mve(const bt_qadd *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi);
    int32x4_t u, v;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[a]], #4\n\t"
                     "vldrb.s32 %q[u], [%[b]], #4\n\t"
                     "vmul.i32 %q[v], %q[v], %[a_factor]\n\t"
                     "vmla.s32 %q[v], %q[u], %[b_factor]\n\t"
                     "vadd.i32 %q[v], %q[v], %[offset]\n\t"
                     "vshl.s32 %q[v], %[shift]\n\t"
                     "vmax.s32 %q[v], %q[v], %q[lo]\n\t"
                     "vmin.s32 %q[v], %q[v], %q[hi]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [a] "+&l"(a), [b] "+&l"(b), [y] "+&l"(y), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(p->shape[3]), [a_factor] "r"(p->a_factor), [b_factor] "r"(p->b_factor),
                       [offset] "r"(p->offset), [shift] "r"(-p->shift), [lo] "w"(lo), [hi] "w"(hi)
                     : "lr", "cc", "memory");
}

/* 13 instructions for four products. */
BT_INLINE void bt_qmul_row_mve(const bt_qmul *p, const int8_t *a, const int8_t *b, int8_t *y)
{
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi), multiplier = vdupq_n_s32(p->multiplier);
    int32x4_t u, v;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[a]], #4\n\t"
                     "vldrb.s32 %q[u], [%[b]], #4\n\t"
                     "vsub.i32 %q[v], %q[v], %[a_zero]\n\t"
                     "vsub.i32 %q[u], %q[u], %[b_zero]\n\t"
                     "vmul.i32 %q[v], %q[v], %q[u]\n\t"
                     "vshl.s32 %q[v], %[shift]\n\t"
                     "vrmulh.s32 %q[v], %q[v], %q[multiplier]\n\t"
                     "vadd.i32 %q[v], %q[v], %[zero]\n\t"
                     "vmax.s32 %q[v], %q[v], %q[lo]\n\t"
                     "vmin.s32 %q[v], %q[v], %q[hi]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [a] "+&l"(a), [b] "+&l"(b), [y] "+&l"(y), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(p->shape[3]), [a_zero] "r"(p->a_zero), [b_zero] "r"(p->b_zero), [shift] "r"(p->shift),
                       [zero] "r"(p->zero), [multiplier] "w"(multiplier), [lo] "w"(lo), [hi] "w"(hi)
                     : "lr", "cc", "memory");
}

/* The outer three loops around rows. */
#define BT_ROWS(symbol, params, row)                                                                                   \
    BT_KERNEL void symbol(const params *p, const int8_t *a, const int8_t *b, int8_t *y)                                \
    {                                                                                                                  \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                                      \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                                  \
                for (int32_t k = 0; k < p->shape[2]; k++, y += p->shape[3])                                            \
                    row(p, a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2],                                 \
                        b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2], y);                                \
    }

BT_ROWS(bt_qadd_mve, bt_qadd, bt_qadd_row_mve)
BT_ROWS(bt_qmul_mve, bt_qmul, bt_qmul_row_mve)

#undef BT_ROWS
