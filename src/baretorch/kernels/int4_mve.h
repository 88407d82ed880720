/* Two rows of int4.h on Arm cores with Helium: 6 instructions for 32 products. */
#ifndef BT_INT4_MVE_H
#define BT_INT4_MVE_H

#include "int4.h"
#include "int8_mve.h"

BT_GIVEN void bt_int4_two_mve(int32_t sums[2], const int8_t *x, const uint8_t *w, int32_t n)
{
    int32_t a = sums[0], b = sums[1];
    uint8x16_t u, v, low;
    __asm__ volatile("dlstp.8 lr, %[n]\n"
                     "1:\n\t"
                     "vldrb.u8 %q[u], [%[x]], #16\n\t"
                     "vldrb.u8 %q[v], [%[w]], #16\n\t"
                     "vand %q[low], %q[v], %q[mask]\n\t"
                     "vmladava.s8 %[a], %q[u], %q[low]\n\t"
                     "vshr.u8 %q[v], %q[v], #4\n\t"
                     "vmladava.s8 %[b], %q[u], %q[v]\n\t"
                     "letp lr, 1b"
                     : [x] "+&r"(x), [w] "+&r"(w), [a] "+&Te"(a), [b] "+&Te"(b), [u] "=&w"(u), [v] "=&w"(v),
                       [low] "=&w"(low)
                     : [n] "r"(n), [mask] "w"(vdupq_n_u8(15))
                     : "lr", "cc", "memory");
    sums[0] = a;
    sums[1] = b;
}

BT_GIVEN int32_t bt_int4_sum_mve(const int8_t *x, int32_t n)
{
    int32_t sum = 0;
    int8x16_t v;
    __asm__ volatile("dlstp.8 lr, %[n]\n"
                     "1:\n\t"
                     "vldrb.u8 %q[v], [%[x]], #16\n\t"
                     "vaddva.s8 %[sum], %q[v]\n\t"
                     "letp lr, 1b"
                     : [x] "+&r"(x), [sum] "+&Te"(sum), [v] "=&w"(v)
                     : [n] "r"(n)
                     : "lr", "cc", "memory");
    return sum;
}

BT_INLINE void bt_int4_copy_mve(int8_t *to, const int8_t *from, int32_t n)
{
    bt_mve_copy(to, from, n);
}

BT_INLINE void bt_int4_outputs_mve(const bt_int4_layer *l, const int8_t *x, const uint8_t *w, const int32_t *bias,
                                   const int32_t *multiplier, int8_t *y)
{
    bt_int4_rows(bt_int4_two_mve, bt_int4_sum_mve, l, x, w, bias, multiplier, y);
}

#endif
