/* qconv2d, one group without pool, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * The windows of three positions are expanded to halfwords once, side by side; then two output channels at a time run
 * over them. Weights of two channels share a halfword, 256 * second + first, as in qlinear/dsp.c: one extension feeds
 * six dual multiplies, of which three sum up the first channel and three both. 37 instructions for 48 products.
 *
 * All three windows are read before their outputs are written, position after position. */
#include "windows_dsp.h"

/* Stands right behind the windows, so that the pointer that ran through them finds it. */
typedef struct {
    int8_t *y;           /* the first position's next output */
    int32_t zero;        /* of y */
    int32_t second;      /* from the first position's outputs to the second's */
    int32_t third;       /* and to the third's */
    const int8_t *end;   /* of the first position's outputs */
    int32_t eights;      /* of taps, plus 1 */
    const int32_t *taps; /* [taps / 2][3] pairs of halfwords */
    const void *frame;   /* place for r7, which compilers may use as frame pointer and then do not let go */
} bt_qconv2d_state;

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

/* Positions of y are *y_stride apart; `dense`: that is p->out itself, nothing is cut. */
BT_INLINE void bt_qconv2d_threes(const bt_qconv2d *p, const int32_t *y_stride, int dense, const int8_t *x,
                                 const int32_t *weight, int8_t *y, void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) >> 3;
    int32_t *const windows = (int32_t *)scratch;
    bt_qconv2d_state *const state = (bt_qconv2d_state *)(windows + 12 * eights);
    int8_t *const bytes = (int8_t *)(state + 1);
    state->zero = p->zero;
    state->eights = eights + 1;
    state->taps = windows;
    for (int32_t n = 0; n < p->batch; n++) {
        int32_t top = -p->pad_top, left = -p->pad_left;
        for (int32_t outputs = p->out_h * p->out_w; outputs > 0; outputs -= 3) {
            for (int32_t k = 0; k < 3; k++) {
                bt_qconv2d_window(p, x, top, left, windows + k, 3, bytes);
                if (k + 1 < outputs) { /* else the last position stands there twice or three times */
                    left += p->stride_w;
                    if (left == p->out_w * p->stride_w - p->pad_left) {
                        left = -p->pad_left;
                        top += p->stride_h;
                    }
                }
            }
            state->y = y;
            state->end = y + p->out;
            state->second = outputs > 1 ? *y_stride : 0;
            state->third = outputs > 2 ? 2 * *y_stride : state->second;
            bt_qconv2d_three(state, weight);
            const int32_t made = state->third + p->out;
            for (int32_t i = 0; (p->lo > -128 || p->hi < 127) && i < made; i++)
                if (dense || i % *y_stride < p->out)
                    y[i] = (int8_t)bt_clamp_i32(y[i], p->lo, p->hi);
            y += dense ? made : state->third + *y_stride;
        }
        x += p->in_h * p->in_w * p->in;
    }
}

/* scratch: 6 bytes a tap, taps rounded up to a multiple of eight; 32 bytes; and unless the kernel is 1x1 on channels in
 * fours without padding, the taps as bytes, rounded up to a multiple of four */
BT_KERNEL void bt_qconv2d_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch)
{
    bt_qconv2d_threes(p, &p->out, 1, x, weight, y, scratch);
}

BT_KERNEL void bt_qconv2d_channels_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight, int8_t *y,
                                       void *scratch)
{
    bt_qconv2d_threes(&p->layer, &p->y_stride, 0, x, weight, y, scratch);
}
