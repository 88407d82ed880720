/* qconv2d16, one group, for Arm cores with Helium: window after window, four channels at a time. */
#include "../int8_mve.h"
#include "qconv2d16.h"

/* Sums of four rows of weights: 10 instructions for 32 products. Loads that extend take low registers. */
BT_INLINE int32x4_t bt_qconv2d16_four_mve(const int16_t *x, const int8_t *w, int32_t n)
{
    const int8_t *w1 = w + n, *w2 = w1 + n, *w3 = w2 + n;
    int32_t a = 0, b = 0, c = 0, d = 0;
    int32x4_t u, v;
    __asm__ volatile("dlstp.16 lr, %[n]\n"
                     "1:\n\t"
                     "vldrh.u16 %q[u], [%[x]], #16\n\t"
                     "vldrb.s16 %q[v], [%[w0]], #8\n\t"
                     "vmladava.s16 %[a], %q[u], %q[v]\n\t"
                     "vldrb.s16 %q[v], [%[w1]], #8\n\t"
                     "vmladava.s16 %[b], %q[u], %q[v]\n\t"
                     "vldrb.s16 %q[v], [%[w2]], #8\n\t"
                     "vmladava.s16 %[c], %q[u], %q[v]\n\t"
                     "vldrb.s16 %q[v], [%[w3]], #8\n\t"
                     "vmladava.s16 %[d], %q[u], %q[v]\n\t"
                     "letp lr, 1b\n\t"
                     "vmov %q[u][2], %q[u][0], %[a], %[c]\n\t"
                     "vmov %q[u][3], %q[u][1], %[b], %[d]"
                     : [x] "+r"(x), [w0] "+l"(w), [w1] "+l"(w1), [w2] "+l"(w2), [w3] "+l"(w3), [a] "+Te"(a),
                       [b] "+Te"(b), [c] "+Te"(c), [d] "+Te"(d), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(n)
                     : "lr", "cc", "memory");
    return u;
}

BT_SHARED void bt_qconv2d16_window_mve(const bt_qconv2d *p, const int16_t *x, const int8_t *weight, const int32_t *bias,
                                       const int32_t *multiplier, int16_t *y)
{
    const int32_t taps = p->kernel_h * p->kernel_w * p->in;
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi);
    for (int32_t block = 0; block < p->out; block += 4) {
        const int32_t o = block + 4 <= p->out ? block : p->out - 4; /* the last four may overlap those before */
        int32x4_t v = bt_qconv2d16_four_mve(x, weight + o * taps, taps);
        v = vshlq_r_s32(vaddq_s32(v, vld1q_s32(bias + o)), p->shift);
        v = vrmulhq_s32(v, vld1q_s32(multiplier + o));
        vstrhq_s32(y + o, vminq_s32(vmaxq_s32(v, lo), hi));
    }
}

BT_KERNEL void bt_qconv2d16_mve(const bt_qconv2d *p, const int16_t *x, const int8_t *weight, const int32_t *bias,
                                const int32_t *multiplier, int16_t *y, void *scratch)
{
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t position = 0; position < p->out_h * p->out_w; position++, y += p->out) {
            const int32_t top = position / p->out_w * p->stride_h - p->pad_top;
            const int32_t left = position % p->out_w * p->stride_w - p->pad_left;
            int16_t *to = (int16_t *)scratch;
            for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                const int32_t h = top + kh * p->dilation_h;
                for (int32_t kw = 0; kw < p->kernel_w; kw++, to += p->in) {
                    const int32_t w = left + kw * p->dilation_w;
                    if (h >= 0 && h < p->in_h && w >= 0 && w < p->in_w) {
                        bt_mve_copy((int8_t *)to, (const int8_t *)(x + (h * p->in_w + w) * p->in), 2 * p->in);
                    } else {
                        for (int32_t i = 0; i < p->in; i++)
                            to[i] = 0;
                    }
                }
            }
            bt_qconv2d16_window_mve(p, (const int16_t *)scratch, weight, bias, multiplier, y);
        }
    }
}
