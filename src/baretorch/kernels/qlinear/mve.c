/* qlinear for Arm cores with Helium. */
#include "../int8_mve.h"
#include "qlinear.h"

/* Sums of four rows of weights: 10 instructions for 64 products. */
BT_INLINE int32x4_t bt_qlinear_four(const int8_t *x, const int8_t *w, int32_t in)
{
    const int8_t *w1 = w + in, *w2 = w1 + in, *w3 = w2 + in;
    int32_t a = 0, b = 0, c = 0, d = 0;
    int32x4_t u, v;
    __asm__ volatile("dlstp.8 lr, %[in]\n"
                     "1:\n\t"
                     "vldrb.u8 %q[u], [%[x]], #16\n\t"
                     "vldrb.u8 %q[v], [%[w0]], #16\n\t"
                     "vmladava.s8 %[a], %q[u], %q[v]\n\t"
                     "vldrb.u8 %q[v], [%[w1]], #16\n\t"
                     "vmladava.s8 %[b], %q[u], %q[v]\n\t"
                     "vldrb.u8 %q[v], [%[w2]], #16\n\t"
                     "vmladava.s8 %[c], %q[u], %q[v]\n\t"
                     "vldrb.u8 %q[v], [%[w3]], #16\n\t"
                     "vmladava.s8 %[d], %q[u], %q[v]\n\t"
                     "letp lr, 1b\n\t"
                     "vmov %q[u][2], %q[u][0], %[a], %[c]\n\t"
                     "vmov %q[u][3], %q[u][1], %[b], %[d]"
                     : [x] "+r"(x), [w0] "+r"(w), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [a] "+Te"(a),
                       [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [u] "=&w"(u), [v] "=&w"(v)
                     : [in] "r"(in)
                     : "lr", "cc", "memory");
    return u;
}

BT_SHARED void bt_qlinear_row_mve(const bt_mve_layer *l, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                  const int32_t *multiplier, int8_t *y)
{
    for (int32_t block = 0; block < l->out; block += 4) {
        const int32_t o = block + 4 <= l->out ? block : l->out - 4; /* the last four may overlap those before */
        const int32x4_t sums = vaddq_s32(bt_qlinear_four(x, weight + o * l->taps, l->taps), vld1q_s32(bias + o));
        vstrbq_s32(y + o, bt_mve_requantize(l, sums, vld1q_s32(multiplier + o)));
    }
}

BT_INLINE bt_mve_layer bt_qlinear_layer(const bt_qlinear *p)
{
    const bt_mve_layer layer = {
        .taps = p->in, .out = p->out, .shift = p->shift, .zero = p->zero, .lo = p->lo, .hi = p->hi
    };
    return layer;
}

BT_KERNEL void bt_qlinear_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y)
{
    const bt_mve_layer layer = bt_qlinear_layer(p);
    bt_qlinear_row_mve(&layer, x, weight, bias, multiplier, y);
}

/* scratch: twice the inputs rounded up to 16 */
BT_KERNEL void bt_qlinear_rows_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                   const int32_t *multiplier, int8_t *y, void *scratch)
{
    const bt_mve_layer layer = bt_qlinear_layer(p);
    bt_mve_rows(&layer, x, p->batch, weight, bias, multiplier, y, scratch);
}
