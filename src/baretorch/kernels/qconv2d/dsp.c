/* qconv2d, one group without pool, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * The windows of three positions are expanded to halfwords once, side by side; then two output channels at a time run
 * over them. Weights of two channels share a halfword, 256 * second + first, as in qlinear/dsp.c: one extension feeds
 * six dual multiplies, of which three sum up the first channel and three both. 37 instructions for 48 products.
 *
 * All three windows are read before their outputs are written, position after position. */
#include "threes_dsp.h"

/* All outputs of three positions. A turn takes 16 taps; an odd number of eights begins in its middle. In the loop r0 points to taps and r1 to weights, r2-r4 hold a pair of taps of each
 * position, r5 weights of two channels, r6 those of the first, r7-r9 the first channel's sums and r10-r12 256 times the
 * second's plus the first's. */
BT_SHARED void bt_qconv2d_three(bt_qconv2d_state *state, const int32_t *weight)
{
    register void *r0 __asm__("r0") = state;
    register const int32_t *r1 __asm__("r1") = weight;
#define BT_TWO_TAPS                                                                                                    \
    "ldr r5, [r1], #4\n\t"                                                                                             \
    "ldmia r0!, {r2-r4}\n\t"                                                                                           \
    "sxtb16 r6, r5\n\t"                                                                                                \
    "smlad r7, r6, r2, r7\n\t"                                                                                         \
    "smlad r8, r6, r3, r8\n\t"                                                                                         \
    "smlad r9, r6, r4, r9\n\t"                                                                                         \
    "smlad r10, r5, r2, r10\n\t"                                                                                       \
    "smlad r11, r5, r3, r11\n\t"                                                                                       \
    "smlad r12, r5, r4, r12\n\t"
#define BT_EIGHT_TAPS BT_TWO_TAPS BT_TWO_TAPS BT_TWO_TAPS BT_TWO_TAPS
#define BT_OUTPUT(first, second)                                                                                       \
    "sub " second ", " second ", " first "\n\t"                                                                        \
    "asr " second ", " second ", #8\n\t"                                                                               \
    "smmlar " first ", " first ", r2, r5\n\t"                                                                          \
    "smmlar " second ", " second ", r3, r5\n\t"                                                                        \
    "ssat " first ", #8, " first "\n\t"                                                                                \
    "ssat " second ", #8, " second "\n\t"                                                                              \
    "bfi " first ", " second ", #8, #8\n\t"
    __asm__ volatile("str r7, [r0, #28]\n"
                     "1:\n\t"
                     "ldrd r7, r10, [r1], #8\n\t"
                     "ldrd lr, r0, [r0, #20]\n\t"
                     "mov r8, r7\n\t"
                     "mov r9, r7\n\t"
                     "mov r11, r10\n\t"
                     "mov r12, r10\n\t"
                     "lsrs lr, lr, #1\n\t"
                     "bcc 3f\n"
                     "2:\n\t" BT_EIGHT_TAPS "3:\n\t" BT_EIGHT_TAPS "subs lr, lr, #1\n\t"
                     "bne 2b\n\t"
                     "ldrd r2, r3, [r1], #8\n\t"
                     "ldrd r4, r5, [r0]\n\t" /**/
                     BT_OUTPUT("r7", "r10") BT_OUTPUT("r8", "r11") BT_OUTPUT("r9", "r12") "ldrd r2, r3, [r0, #8]\n\t"
                     "ldr r5, [r0, #16]\n\t"
                     "strh r8, [r4, r2]\n\t"
                     "strh r9, [r4, r3]\n\t"
                     "strh r7, [r4], #2\n\t"
                     "str r4, [r0]\n\t"
                     "cmp r4, r5\n\t"
                     "bne 1b\n\t"
                     "ldr r7, [r0, #28]"
                     : "+r"(r0), "+r"(r1)
                     :
                     : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef BT_TWO_TAPS
#undef BT_EIGHT_TAPS
#undef BT_OUTPUT
}

/* scratch: 6 bytes a tap, taps rounded up to a multiple of eight; 32 bytes; and unless the kernel is 1x1 on channels in
 * fours without padding, the taps as bytes, rounded up to a multiple of four */
BT_KERNEL void bt_qconv2d_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch)
{
    bt_qconv2d_threes(bt_qconv2d_three, 0, p, &p->out, 1, x, weight, y, scratch);
}

BT_KERNEL void bt_qconv2d_channels_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight, int8_t *y,
                                       void *scratch)
{
    bt_qconv2d_threes(bt_qconv2d_three, 0, &p->layer, &p->y_stride, 0, x, weight, y, scratch);
}
