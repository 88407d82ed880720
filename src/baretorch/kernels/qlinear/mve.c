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

BT_SHARED void bt_qlinear_row_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                  const int32_t *multiplier, int8_t *y)
{
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi);
    for (int32_t block = 0; block < p->out; block += 4) {
        const int32_t o = block + 4 <= p->out ? block : p->out - 4; /* the last four may overlap those before */
        int32x4_t v = bt_qlinear_four(x, weight + o * p->in, p->in);
        v = vshlq_r_s32(vaddq_s32(v, vld1q_s32(bias + o)), p->shift);
        v = vaddq_n_s32(vrmulhq_s32(v, vld1q_s32(multiplier + o)), p->zero);
        vstrbq_s32(y + o, vminq_s32(vmaxq_s32(v, lo), hi));
    }
}

BT_KERNEL void bt_qlinear_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y)
{
    bt_qlinear_row_mve(p, x, weight, bias, multiplier, y);
}

/* scratch: two rows of x */
BT_KERNEL void bt_qlinear_rows_mve(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                   void *scratch)
{
    const bt_mve_layer layer = { p->in, p->out, p->zero, constants };
    bt_mve_rows(&layer, x, y, p->batch, (int8_t *)scratch);
    bt_mve_limit_i8(y, p->batch * p->out, p->lo, p->hi);
}
