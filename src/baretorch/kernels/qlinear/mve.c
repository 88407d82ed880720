/* qlinear for Arm cores with Helium. */
#include "../int8_mve.h"
#include "qlinear.h"

/* `fours` times four rows of weights: 10 instructions for 64 products, and 23 for four outputs. */
BT_INLINE void bt_qlinear_four_rows(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                const int32_t *multiplier, int8_t *y, int32_t fours)
{
    struct {
        const int8_t *weight;
        const int32_t *multiplier;
        int8_t *y;
        const int32_t *bias;
        int32_t left;
        const int8_t *x;
    } s = { weight, multiplier, y, bias, fours, x };
    __asm__ volatile("0:\n\t"
                     "ldm %[s], {r1, r3, r5, r8, r9}\n\t"
                     "ldm r8!, {r0, r2, r4, r6}\n\t"
                     "vldrw.u32 q2, [r3], #16\n\t"
                     "add r10, r1, %[in], lsl #2\n\t"
                     "add r5, r5, #4\n\t"
                     "subs r9, r9, #1\n\t" /* nothing else sets flags until the branch */
                     "str r10, [%[s]]\n\t"
                     "strd r3, r5, [%[s], #4]\n\t"
                     "strd r8, r9, [%[s], #12]\n\t"
                     "add r3, r1, %[in]\n\t"
                     "add r8, r3, %[in]\n\t"
                     "add r9, r8, %[in]\n\t"
                     "ldr r10, [%[s], #20]\n\t"
                     "dlstp.8 lr, %[in]\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [r10], #16\n\t"
                     "vldrb.u8 q1, [r1], #16\n\t"
                     "vmladava.s8 r0, q0, q1\n\t"
                     "vldrb.u8 q1, [r3], #16\n\t"
                     "vmladava.s8 r2, q0, q1\n\t"
                     "vldrb.u8 q1, [r8], #16\n\t"
                     "vmladava.s8 r4, q0, q1\n\t"
                     "vldrb.u8 q1, [r9], #16\n\t"
                     "vmladava.s8 r6, q0, q1\n\t"
                     "letp lr, 1b\n\t"
                     "vmov q0[2], q0[0], r0, r4\n\t"
                     "vmov q0[3], q0[1], r2, r6\n\t"
                     "vshl.s32 q0, q0, %q[shift]\n\t"
                     "vrmulh.s32 q0, q0, q2\n\t"
                     "vadd.i32 q0, q0, %q[zero]\n\t"
                     "vmax.s32 q0, q0, %q[lo]\n\t"
                     "vmin.s32 q0, q0, %q[hi]\n\t"
                     "vstrb.32 q0, [r5, #-4]\n\t"
                     "bne 0b"
                     :
                     : [s] "r"(&s), [in] "r"(p->in), [shift] "w"(vdupq_n_s32(p->shift)), [zero] "w"(vdupq_n_s32(p->zero)),
                       [lo] "w"(vdupq_n_s32(p->lo)), [hi] "w"(vdupq_n_s32(p->hi))
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "lr", "q0", "q1", "q2", "cc",
                       "memory");
}

BT_SHARED void bt_qlinear_row_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                                  const int32_t *multiplier, int8_t *y)
{
    for (int32_t o = 0, n; o < p->out; o += 4 * n) {
        n = o ? 1 : p->out / 4;
        if (o) /* the last four overlap those before */
            o = p->out - 4;
        bt_qlinear_four_rows(p, x, weight + o * p->in, bias + o, multiplier + o, y + o, n);
    }
}

BT_KERNEL void bt_qlinear_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y)
{
    bt_qlinear_row_mve(p, x, weight, bias, multiplier, y);
}

/* scratch: as bt_mve_rows */
BT_KERNEL void bt_qlinear_rows_mve(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                   void *scratch)
{
    const bt_mve_layer layer = { p->in, p->out, p->zero, constants };
    bt_mve_rows(&layer, x, y, p->batch, (int8_t *)scratch);
    bt_mve_limit_i8(y, p->batch * p->out, p->lo, p->hi);
}
