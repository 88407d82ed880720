/* qlinear with weights of 4 bits in groups, for Arm cores with Helium: four rows at a time, two in a byte, with
 * their signs. A nibble at the top of its byte is 16 times its weight, so sums are 16 times theirs. */
#include "../int8_mve.h"
#include "qlinear.h"

/* Sixteen inputs of four rows: 11 instructions for 64 products. */
#define BT_GROUPS_SIXTEEN(mla)                                                                                         \
    "vldrb.u8 %q[u], [%[x]], #16\n\t"                                                                                  \
    "vldrb.u8 %q[v], [%[w]], #16\n\t"                                                                                  \
    "vshl.i8 %q[low], %q[v], #4\n\t" mla " %[a], %q[u], %q[low]\n\t"                                                   \
    "vand %q[v], %q[v], %q[high]\n\t" mla " %[b], %q[u], %q[v]\n\t"                                                    \
    "vldrb.u8 %q[v], [%[z]], #16\n\t"                                                                                  \
    "vshl.i8 %q[low], %q[v], #4\n\t" mla " %[c], %q[u], %q[low]\n\t"                                                   \
    "vand %q[v], %q[v], %q[high]\n\t" mla " %[d], %q[u], %q[v]\n\t"
/* Add their sums, times the factors. */
#define BT_GROUPS_ADD                                                                                                  \
    "vmov %q[u][2], %q[u][0], %[a], %[c]\n\t"                                                                          \
    "vmov %q[u][3], %q[u][1], %[b], %[d]\n\t"                                                                          \
    "vldrb.u32 %q[v], [%[factor]], #4\n\t"                                                                             \
    "vmul.i32 %q[u], %q[u], %q[v]\n\t"                                                                                 \
    "vadd.i32 %q[sums], %q[sums], %q[u]\n\t"

/* Four rows, from two on in w: 28 instructions for a group's 128 products. */
BT_INLINE int32x4_t bt_int4_groups_four(const int8_t *x, const uint8_t *w, int32_t in, const uint8_t *factor)
{
    const uint8_t *z = w + in;
    const uint8x16_t high = vdupq_n_u8(0xf0);
    int32x4_t sums = vdupq_n_s32(0);
    uint8x16_t u, v, low;
    int32_t a, b, c, d;
    __asm__ volatile("wls lr, %[n], 2f\n"
                     "1:\n\t" BT_GROUPS_SIXTEEN("vmladav.s8") BT_GROUPS_SIXTEEN("vmladava.s8") BT_GROUPS_ADD
                     "le lr, 1b\n"
                     "2:"
                     : [x] "+&r"(x), [w] "+&r"(w), [z] "+&r"(z), [factor] "+&l"(factor), [sums] "+&w"(sums),
                       [a] "=&Te"(a), [b] "=&Te"(b), [c] "=&Te"(c), [d] "=&Te"(d), [u] "=&w"(u), [v] "=&w"(v),
                       [low] "=&w"(low)
                     : [n] "r"(in / 32), [high] "w"(high)
                     : "lr", "cc", "memory");
    if (in % 32) {
        a = b = c = d = 0;
        __asm__ volatile("dlstp.8 lr, %[n]\n"
                         "1:\n\t" BT_GROUPS_SIXTEEN("vmladava.s8") "letp lr, 1b\n\t" BT_GROUPS_ADD
                         : [x] "+&r"(x), [w] "+&r"(w), [z] "+&r"(z), [factor] "+&l"(factor), [sums] "+&w"(sums),
                           [a] "+&Te"(a), [b] "+&Te"(b), [c] "+&Te"(c), [d] "+&Te"(d), [u] "=&w"(u), [v] "=&w"(v),
                           [low] "=&w"(low)
                         : [n] "r"(in % 32), [high] "w"(high)
                         : "lr", "cc", "memory");
    }
    return vshrq_n_s32(sums, 4);
}

BT_KERNEL void bt_qlinear4_groups_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight,
                                      const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                      int8_t *y)
{
    const int32_t groups = (p->in + 31) / 32;
    for (int32_t b = 0; b < p->batch; b++, x += p->in, y += p->out) {
        const uint8_t *w = weight, *factor = factors;
        for (int32_t o = 0; o < p->out; o += 4, w += 2 * p->in, factor += 4 * groups) {
            const mve_pred16_t used = vctp32q((uint32_t)(p->out - o));
            int32x4_t v = vaddq_s32(bt_int4_groups_four(x, w, p->in, factor), vldrwq_z_s32(bias + o, used));
            v = vshlq_s32(v, vdupq_n_s32(p->shift));
            v = vaddq_n_s32(vrmulhq_s32(v, vldrwq_z_s32(multiplier + o, used)), p->zero);
            v = vminq_s32(vmaxq_s32(v, vdupq_n_s32(p->lo)), vdupq_n_s32(p->hi));
            vstrbq_p_s32(y + o, v, used);
        }
    }
}

/* Four rows as weights of 8 bits, in the order of int8_mve.h. */
BT_INLINE void bt_int4_groups_expand(int8_t *to, const uint8_t *w, int32_t in, const uint8_t *factor)
{
    for (int32_t i = 0, n; i < in; i += 16, w += 16) {
        const mve_pred16_t used = vctp8q((uint32_t)(in - i));
        const uint8_t *const by = factor + (i / 32) * 4;
        n = in - i < 16 ? in - i : 16;
        for (int32_t k = 0; k < 4; k += 2, to += 2 * n) {
            const int8x16_t v = vldrbq_z_s8((const int8_t *)w + (k >> 1) * in, used);
            const int8x16_t low = vshrq_n_s8(vshlq_n_s8(v, 4), 4), high = vshrq_n_s8(v, 4);
            vstrbq_p_s8(to, vmulq_n_s8(low, (int8_t)by[k]), used);
            vstrbq_p_s8(to + n, vmulq_n_s8(high, (int8_t)by[k + 1]), used);
        }
    }
}

/* Each four rows become weights of 8 bits once, for all rows of inputs. */
BT_KERNEL void bt_qlinear4_groups_rows_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight,
                                           const uint8_t *factors, const int32_t *bias, const int32_t *multiplier,
                                           int8_t *y, void *scratch)
{
    const int32_t groups = (p->in + 31) / 32;
    int32_t *const constants = (int32_t *)scratch;
    bt_mve_layer layer = { p->in, 4, p->zero, constants };
    for (int32_t o = 0; o < p->out; o += 4) {
        const mve_pred16_t used = vctp32q((uint32_t)(p->out - o));
        if (p->out - o < 4)
            layer.out = p->out - o;
        vst1q_s32(constants, vldrwq_z_s32(bias + o, used));
        bt_int4_groups_expand((int8_t *)(constants + 4), weight + o / 2 * p->in, p->in, factors + o * groups);
        vst1q_s32(constants + 4 + p->in, vldrwq_z_s32(multiplier + o, used));
        bt_mve_windows(&layer, x, p->in, y + o, p->out, p->batch);
    }
    bt_mve_limit_i8(y, p->batch * p->out, p->lo, p->hi);
}
