/* A row times a matrix for Arm cores with a single-precision FPU: eight columns at a time. */
#ifndef BT_MATMUL_COLUMNS_H
#define BT_MATMUL_COLUMNS_H

#include "../fpu.h"

/* y[0..7] = sum over i < n of a[i * a_step] * b[i * b_step + 0..7], n above 0; steps in bytes.
 * One load multiple feeds eight products: 14 instructions for them. */
BT_INLINE void bt_fpu_eight_columns(const float *a, int32_t a_step, const float *b, int32_t b_step, float *y, int32_t n)
{
    static const float zeros[8] = {0};
    __asm__ volatile("vldmia %[zeros], {s0-s7}\n"
                     "1:\n\t"
                     "vldr s8, [%[a]]\n\t"
                     "vldmia %[b], {s16-s23}\n\t"
                     "add %[a], %[a], %[a_step]\n\t"
                     "add %[b], %[b], %[b_step]\n\t" /**/
                     BT_MACS_16(8)                   /**/
                     "subs %[n], %[n], #1\n\t"
                     "bne 1b\n\t"
                     "vstmia %[y], {s0-s7}"
                     : [a] "+&r"(a), [b] "+&r"(b), [n] "+&r"(n)
                     : [zeros] "r"(zeros), [a_step] "r"(a_step), [b_step] "r"(b_step), [y] "r"(y)
                     : BT_SINGLES, "cc", "memory");
}

/* y[j] = sum over i < n of a[i * a_step] * b[i * b_step + j] for j < columns, n above 0; steps in elements. */
BT_SHARED void bt_fpu_columns(const float *a, int32_t a_step, const float *b, int32_t b_step, float *y, int32_t columns,
                              int32_t n)
{
    const int32_t size = (int32_t)sizeof *a;
    for (; columns >= 8; columns -= 8, b += 8, y += 8)
        bt_fpu_eight_columns(a, a_step * size, b, b_step * size, y, n);
    for (; columns > 0; columns--, b++, y++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < n; i++)
            sum += a[i * a_step] * b[i * b_step];
        *y = sum;
    }
}

#endif
