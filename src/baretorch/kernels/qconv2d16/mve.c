/* qconv2d16, one group, for Arm cores with Helium: two windows and four channels at a time, as in int8_mve.h. Windows are
 * read as a whole before their outputs are written. On a Cortex-M55 a 3x3 of 16 channels, 32x32, takes 1,077,720
 * instructions (one window at a time: 1,334,859). */
#include "../int8_mve.h"
#include "qconv2d16.h"

/* One window or two, with as many numbers after them as fill a vector, and where their outputs go. */
typedef struct {
    const int16_t *x, *z;
    int16_t *y, *z_y;
    int32_t eights; /* of taps */
    int32_t shift;
    int32_t fours; /* of channels */
} bt_qconv2d16_two;

/* Four channels of one window after the other: 10 instructions for 32 products. Gives where the next constants are. */
BT_INLINE const int8_t *bt_qconv2d16_one_mve(const bt_qconv2d16_two *s, const int8_t *k, int32x4_t lo, int32x4_t hi)
{
    int16_t *y = s->y;
    for (int32_t i = 0; i < s->fours; i++, y += 4) {
        const int16_t *x = s->x;
        int32_t a = 0, b = 0, c = 0, d = 0;
        int32x4_t v = vld1q_s32((const int32_t *)k), u;
        const int32x4_t bias = v;
        k += 16;
        __asm__ volatile("dls lr, %[n]\n"
                         "1:\n\t"
                         "vldrh.u16 %q[u], [%[x]], #16\n\t"
                         "vldrb.s16 %q[v], [%[k]], #8\n\t"
                         "vmladava.s16 %[a], %q[u], %q[v]\n\t"
                         "vldrb.s16 %q[v], [%[k]], #8\n\t"
                         "vmladava.s16 %[b], %q[u], %q[v]\n\t"
                         "vldrb.s16 %q[v], [%[k]], #8\n\t"
                         "vmladava.s16 %[c], %q[u], %q[v]\n\t"
                         "vldrb.s16 %q[v], [%[k]], #8\n\t"
                         "vmladava.s16 %[d], %q[u], %q[v]\n\t"
                         "le lr, 1b\n\t"
                         "vmov %q[v][2], %q[v][0], %[a], %[c]\n\t"
                         "vmov %q[v][3], %q[v][1], %[b], %[d]"
                         : [x] "+&r"(x), [k] "+&l"(k), [a] "+&Te"(a), [b] "+&Te"(b), [c] "+&Te"(c), [d] "+&Te"(d),
                           [u] "=&w"(u), [v] "=&w"(v)
                         : [n] "r"(s->eights)
                         : "lr", "cc", "memory");
        v = vrmulhq_s32(vshlq_r_s32(vaddq_s32(v, bias), s->shift), vld1q_s32((const int32_t *)k));
        k += 16;
        vstrhq_s32(y, vminq_s32(vmaxq_s32(v, lo), hi));
    }
    return k;
}

#define BT_CHANNEL(first, second)                                                                                      \
    "vldrb.s16 q2, [%[k]], #8\n\t"                                                                                     \
    "vmladava.s16 " first ", q0, q2\n\t"                                                                               \
    "vmladava.s16 " second ", q1, q2\n\t"
#define BT_EIGHT                                                                                                       \
    "vldrh.u16 q0, [%[x]], #16\n\t"                                                                                    \
    "vldrh.u16 q1, [%[z]], #16\n\t" /**/                                                                               \
    BT_CHANNEL("r0", "r8") BT_CHANNEL("r2", "r10") BT_CHANNEL("r4", "r12") BT_CHANNEL("r6", "lr")
#define BT_OUTPUT(v, y)                                                                                                \
    "vshl.s32 " v ", r4\n\t"                                                                                           \
    "vrmulh.s32 " v ", " v ", q2\n\t"                                                                                  \
    "vmax.s32 " v ", " v ", %q[lo]\n\t"                                                                                \
    "vmin.s32 " v ", " v ", %q[hi]\n\t"                                                                                \
    "vstrh.32 " v ", [" y "], #8\n\t"

/* The same of two windows: 14 instructions for 64 products, and 35 for eight outputs. Sums take all registers with even
 * numbers. */
BT_INLINE const int8_t *bt_qconv2d16_two_mve(bt_qconv2d16_two *s, const int8_t *k, int32x4_t lo, int32x4_t hi)
{
    const int16_t *x, *z;
    int32_t n;
    __asm__ volatile("0:\n\t"
                     "ldrd %[x], %[z], [%[s]]\n\t"
                     "ldr %[n], [%[s], #16]\n\t"
                     "ldrd r0, r2, [%[k]], #8\n\t"
                     "ldrd r4, r6, [%[k]], #8\n\t"
                     "mov r8, r0\n\t"
                     "mov r10, r2\n\t"
                     "mov r12, r4\n\t"
                     "mov lr, r6\n\t"
                     "lsrs %[n], %[n], #1\n\t"
                     "bcc 1f\n\t" BT_EIGHT "1:\n\t"
                     "beq 3f\n"
                     "2:\n\t" BT_EIGHT BT_EIGHT "subs %[n], %[n], #1\n\t"
                     "bne 2b\n"
                     "3:\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vmov q1[2], q1[0], r8, r12\n\t"
                     "vmov q1[3], q1[1], r10, lr\n\t"
                     "vldrw.u32 q2, [%[k]], #16\n\t"
                     "ldrd r0, r2, [%[s], #8]\n\t"
                     "ldrd r4, %[n], [%[s], #20]\n\t" /**/
                     BT_OUTPUT("q0", "r0") BT_OUTPUT("q1", "r2") "strd r0, r2, [%[s], #8]\n\t"
                     "subs %[n], %[n], #1\n\t"
                     "str %[n], [%[s], #24]\n\t"
                     "bne 0b"
                     : [k] "+&l"(k), [x] "=&r"(x), [z] "=&r"(z), [n] "=&r"(n)
                     : [s] "r"(s), [lo] "w"(lo), [hi] "w"(hi)
                     : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "q0", "q1", "q2", "cc", "memory");
    return k;
}

#undef BT_CHANNEL
#undef BT_EIGHT
#undef BT_OUTPUT

/* All channels of `count` windows, one or two, which are next to each other. */
BT_SHARED void bt_qconv2d16_windows_mve(const bt_qconv2d *p, const int16_t *x, int32_t eights, const int32_t *constants,
                                        int16_t *y, int32_t count)
{
    const int32x4_t lo = vdupq_n_s32(p->lo), hi = vdupq_n_s32(p->hi);
    const int8_t *k = (const int8_t *)constants;
    for (int32_t o = 0; o < p->out;) { /* the last four channels may overlap those before */
        const int32_t at = o + 4 <= p->out ? o : p->out - 4;
        bt_qconv2d16_two s = { x, x + 8 * eights, y + at, y + p->out + at, eights, p->shift, o ? 1 : p->out / 4 };
        o += 4 * s.fours;
        k = count == 1 ? bt_qconv2d16_one_mve(&s, k, lo, hi) : bt_qconv2d16_two_mve(&s, k, lo, hi);
    }
}

BT_KERNEL void bt_qconv2d16_mve(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y,
                                void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) / 8;
    const int32_t positions = p->out_h * p->out_w;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        for (int32_t position = 0, count; position < positions; position += count, y += count * p->out) {
            count = position + 1 < positions ? 2 : 1;
            for (int32_t k = 0; k < count; k++) {
                const int32_t top = (position + k) / p->out_w * p->stride_h - p->pad_top;
                const int32_t left = (position + k) % p->out_w * p->stride_w - p->pad_left;
                int16_t *to = (int16_t *)scratch + 8 * eights * k;
                for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                    const int32_t h = top + kh * p->dilation_h;
                    for (int32_t kw = 0; kw < p->kernel_w; kw++, to += p->in) {
                        const int32_t w = left + kw * p->dilation_w;
                        if (h >= 0 && h < p->in_h && w >= 0 && w < p->in_w)
                            bt_mve_copy((int8_t *)to, (const int8_t *)(x + (h * p->in_w + w) * p->in), 2 * p->in);
                        else
                            bt_mve_fill((int8_t *)to, 0, 2 * p->in);
                    }
                }
            }
            bt_qconv2d16_windows_mve(p, (const int16_t *)scratch, eights, constants, y, count);
        }
    }
}
