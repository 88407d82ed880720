/* qconv2d, one group without pool, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * The windows of three positions are expanded to halfwords once, side by side; then two output channels at a time run
 * over them. Weights of two channels share a halfword, 256 * second + first, as in qlinear/dsp.c: one extension feeds
 * six dual multiplies, of which three sum up the first channel and three both. 17 instructions for 24 products, and 28
 * for six outputs. Of the second channel's sums, 256 of each remain, which the last shift takes away.
 *
 * All three windows are read before their outputs are written, position after position. */
#include "threes_dsp.h"

#define BT_TURN 16 /* fours of taps in a turn of the loop, */
#define BT_FOUR 64 /* and bytes of code for each */

/* All outputs of three positions. The first four taps begin the sums; the loop takes the others in turns, of which the
 * first begins so late that the last ends with the last tap. In the loop r0 points to taps and r1 to weights, r2-r4 hold
 * a pair of taps of each position, r5 and r6 weights of two channels and then those of the first, r7-r9 are the first
 * channel's sums, r10-r12 256 times the second's plus the first's, and lr is the state, where the taps end. */
BT_SHARED void bt_qconv2d_three(bt_qconv2d_state *state, const int32_t *weight, int32_t skip)
{
    register void *r0 __asm__("r0") = state;
    register const int32_t *r1 __asm__("r1") = weight;
    register int32_t r2 __asm__("r2") = skip;
#define BT_TWO_TAPS(w)                                                                                                 \
    "ldmia.n r0!, {r2-r4}\n\t"                                                                                         \
    "smlad r10, " w ", r2, r10\n\t"                                                                                    \
    "smlad r11, " w ", r3, r11\n\t"                                                                                    \
    "smlad r12, " w ", r4, r12\n\t"                                                                                    \
    "sxtb16 " w ", " w "\n\t"                                                                                          \
    "smlad r7, " w ", r2, r7\n\t"                                                                                      \
    "smlad r8, " w ", r3, r8\n\t"                                                                                      \
    "smlad r9, " w ", r4, r9\n\t"
#define BT_FOUR_TAPS "ldrd r5, r6, [r1], #8\n\t" BT_TWO_TAPS("r5") BT_TWO_TAPS("r6")
#define BT_TURN_TAPS BT_FOUR_TAPS BT_FOUR_TAPS BT_FOUR_TAPS BT_FOUR_TAPS
    __asm__ volatile("push {r7}\n\t"
                     "mov lr, r0\n\t"
                     "adr.w r3, 2f\n\t"
                     "add r3, r3, r2\n\t"
                     "str r3, [lr, #28]\n\t"
                     "ldr r0, [lr, #12]\n"
                     "1:\n\t"
                     "ldmia r1!, {r5, r6, r7, r10}\n\t"
                     "ldmia r0!, {r2-r4}\n\t"
                     "smlad r12, r5, r4, r10\n\t"
                     "smlad r11, r5, r3, r10\n\t"
                     "smlad r10, r5, r2, r10\n\t"
                     "sxtb16 r5, r5\n\t"
                     "smlad r9, r5, r4, r7\n\t"
                     "smlad r8, r5, r3, r7\n\t"
                     "smlad r7, r5, r2, r7\n\t" BT_TWO_TAPS("r6") "ldr pc, [lr, #28]\n\t"
                     ".p2align 2\n"
                     "2:\n\t" BT_TURN_TAPS BT_TURN_TAPS BT_TURN_TAPS BT_TURN_TAPS "cmp r0, lr\n\t"
                     "bne 2b\n\t"
                     "ldrd r2, r3, [r1], #8\n\t"
                     "ldmia r0!, {r4-r6}\n\t" /**/
                     BT_QCONV2D_OUTPUTS("r7", "r10") BT_QCONV2D_OUTPUTS("r8", "r11") BT_QCONV2D_OUTPUTS("r9", "r12")
                     "ldmia r0, {r0, r10, r11, r12}\n\t"
                     "strh r8, [r4, r10]\n\t"
                     "strh r9, [r4, r11]\n\t"
                     "strh r7, [r4], #2\n\t"
                     "str r4, [lr]\n\t"
                     "cmp r4, r12\n\t"
                     "bne 1b\n\t"
                     "pop {r7}"
                     : "+&r"(r0), "+&r"(r1), "+&r"(r2)
                     :
                     : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef BT_TWO_TAPS
#undef BT_FOUR_TAPS
#undef BT_TURN_TAPS
}

/* The bytes of code that the first turn leaves out of `taps`, a multiple of four, and 1, as addresses of code have it. */
BT_INLINE int32_t bt_qconv2d_skip(int32_t taps)
{
    const int32_t fours = taps / 4 - 1;
    const int32_t turns = fours > 0 ? (fours + BT_TURN - 1) / BT_TURN : 1;
    return (turns * BT_TURN - fours) * BT_FOUR + 1;
}

/* scratch: 6 bytes a tap, taps rounded up to a multiple of four; 32 bytes; and the scratch of windows_dsp.h */
BT_KERNEL void bt_qconv2d_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch)
{
    const int32_t taps = (p->kernel_h * p->kernel_w * p->in + 3) & ~3;
    bt_qconv2d_threes(bt_qconv2d_three, taps, bt_qconv2d_skip(taps), 0, p, &p->out, 1, x, weight, y, scratch);
}

BT_KERNEL void bt_qconv2d_channels_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight, int8_t *y,
                                       void *scratch)
{
    const bt_qconv2d *const q = &p->layer;
    const int32_t taps = (q->kernel_h * q->kernel_w * q->in + 3) & ~3;
    bt_qconv2d_threes(bt_qconv2d_three, taps, bt_qconv2d_skip(taps), 0, q, &p->y_stride, 0, x, weight, y, scratch);
}

#undef BT_TURN
#undef BT_FOUR
