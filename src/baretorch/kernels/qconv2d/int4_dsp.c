/* qconv2d with weights of 4 bits, one group without pool, for cores with the DSP extension (Cortex-M4, M7, M33): as
 * dsp.c, with four taps of two channels in a word. Its low nibbles are the halfwords of two taps, its high ones those of
 * the other two. 8 is added to each weight, which the sums of the windows take back. 40 instructions for 48 products,
 * where dsp.c has 36. */
#include "threes_dsp.h"

/* After the state is the number that is subtracted from the sums of the first channel, and of both. */
BT_INLINE void bt_qconv2d4_outputs(bt_qconv2d_state *state, const int32_t *weight, int32_t turns)
{
    register void *r0 __asm__("r0") = state;
    register const int32_t *r1 __asm__("r1") = weight;
    register int32_t r2 __asm__("r2") = turns;
#define BT_TAPS(w)                                                                                                     \
    "smlad r10, " w ", r2, r10\n\t"                                                                                    \
    "smlad r11, " w ", r3, r11\n\t"                                                                                    \
    "smlad r12, " w ", r4, r12\n\t"                                                                                    \
    "uxtb16 " w ", " w "\n\t"                                                                                          \
    "smlad r7, " w ", r2, r7\n\t"                                                                                      \
    "smlad r8, " w ", r3, r8\n\t"                                                                                      \
    "smlad r9, " w ", r4, r9\n\t"
#define BT_FOUR_TAPS                                                                                                   \
    "ldr r5, [r1], #4\n\t"                                                                                             \
    "ldmia r0!, {r2-r4}\n\t"                                                                                           \
    "and r6, r5, #0x0f0f0f0f\n\t" BT_TAPS("r6") "ldmia r0!, {r2-r4}\n\t"                                               \
    "lsr r5, r5, #4\n\t"                                                                                               \
    "and r5, r5, #0x0f0f0f0f\n\t" BT_TAPS("r5")
    __asm__ volatile("push {r7}\n\t"
                     "str r2, [r0, #28]\n"
                     "1:\n\t"
                     "ldrd r9, r12, [r1], #8\n\t"
                     "add r6, r0, #32\n\t"
                     "ldmia r6!, {r2-r4}\n\t"
                     "sub r7, r9, r2\n\t"
                     "sub r8, r9, r3\n\t"
                     "sub r9, r9, r4\n\t"
                     "ldmia r6, {r2-r4}\n\t"
                     "sub r10, r12, r2\n\t"
                     "sub r11, r12, r3\n\t"
                     "sub r12, r12, r4\n\t"
                     "ldr lr, [r0, #28]\n\t"
                     "ldr r0, [r0, #12]\n\t"
                     "lsrs lr, lr, #1\n\t"
                     "bcc 3f\n"
                     "2:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS "3:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS "subs lr, lr, #1\n\t"
                     "bne 2b\n\t"
                     "ldrd r2, r3, [r1], #8\n\t"
                     "ldmia r0, {r4-r6}\n\t" /**/
                     BT_QCONV2D_OUTPUTS("r7", "r10") BT_QCONV2D_OUTPUTS("r8", "r11") BT_QCONV2D_OUTPUTS("r9", "r12")
                     "ldrd r2, r3, [r0, #16]\n\t"
                     "ldr r5, [r0, #24]\n\t"
                     "strh r8, [r4, r2]\n\t"
                     "strh r9, [r4, r3]\n\t"
                     "strh r7, [r4], #2\n\t"
                     "str r4, [r0]\n\t"
                     "cmp r4, r5\n\t"
                     "bne 1b\n\t"
                     "pop {r7}"
                     : "+&r"(r0), "+&r"(r1), "+&r"(r2)
                     :
                     : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef BT_TAPS
#undef BT_FOUR_TAPS
}

BT_SHARED void bt_qconv2d4_three(bt_qconv2d_state *state, const int32_t *weight, int32_t turns)
{
    int32_t *const less = (int32_t *)(state + 1);
    int32_t sums[3] = { 0, 0, 0 };
    for (const int32_t *at = state->taps; at != (const int32_t *)state; at += 3) {
        BT_UNROLL_4
        for (int32_t k = 0; k < 3; k++)
            sums[k] = bt_dual(at[k], 0x00010001, sums[k]);
    }
    for (int32_t k = 0; k < 3; k++) {
        less[k] = 8 * sums[k];
        less[3 + k] = 257 * 8 * sums[k];
    }
    bt_qconv2d4_outputs(state, weight, turns);
}

BT_KERNEL void bt_qconv2d4_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) >> 3;
    bt_qconv2d_threes(bt_qconv2d4_three, 8 * eights, eights + 1, 24, p, &p->out, 1, x, weight, y, scratch);
}
