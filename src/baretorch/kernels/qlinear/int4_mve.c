/* qlinear with weights of 4 bits for Arm cores with Helium. */
#include "../int8_mve.h"
#include "qlinear.h"

/* first += the low nibbles of a row of bytes times x, second += the high ones: 6 instructions for 32 products. */
BT_INLINE void bt_int4_two(const int8_t *x, const uint8_t *w, int32_t in, int32_t *first, int32_t *second)
{
    int32_t a = *first, b = *second;
    uint8x16_t u, v, low;
    __asm__ volatile("dlstp.8 lr, %[in]\n"
                     "1:\n\t"
                     "vldrb.u8 %q[u], [%[x]], #16\n\t"
                     "vldrb.u8 %q[v], [%[w]], #16\n\t"
                     "vand %q[low], %q[v], %q[mask]\n\t"
                     "vmladava.s8 %[a], %q[u], %q[low]\n\t"
                     "vshr.u8 %q[v], %q[v], #4\n\t"
                     "vmladava.s8 %[b], %q[u], %q[v]\n\t"
                     "letp lr, 1b"
                     : [x] "+r"(x), [w] "+r"(w), [a] "+Te"(a), [b] "+Te"(b), [u] "=&w"(u), [v] "=&w"(v),
                       [low] "=&w"(low)
                     : [in] "r"(in), [mask] "w"(vdupq_n_u8(15))
                     : "lr", "cc", "memory");
    *first = a;
    *second = b;
}

BT_KERNEL void bt_qlinear4_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                               const int32_t *multiplier, int8_t *y)
{
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        const uint8_t *w = weight;
        int32_t start = 0;
        for (int32_t i = 0; i < p->in; i++)
            start -= 8 * x[i];
        for (int32_t o = 0; o < p->out; o += 2, w += p->in) {
            int32_t first = start, second = start;
            bt_int4_two(x, w, p->in, &first, &second);
            y[o] = bt_requantize(first + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
            if (o + 1 < p->out)
                y[o + 1] = bt_requantize(second + bias[o + 1], multiplier[o + 1], p->shift, p->zero, p->lo, p->hi);
        }
    }
}
