/* qconv2d16 for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * The windows of three positions lie side by side, a pair of taps of each; two output channels at a time run over them.
 * A word of weights has four taps of a channel, and is extended twice. 42 instructions for 48 products. */
#include "qconv2d16.h"

#include "../dsp.h"

/* Stands right behind the windows, so that the pointer that ran through them finds it. */
typedef struct {
    int16_t *y;          /* the first position's next output */
    int32_t second;      /* bytes from the first position's outputs to the second's */
    int32_t third;       /* and to the third's */
    const int16_t *end;  /* of the first position's outputs */
    int32_t eights;      /* of taps, plus 1 */
    const int32_t *taps; /* [taps / 2][3] pairs of halfwords */
    const void *frame;   /* place for r7, which compilers may use as frame pointer and then do not let go */
    int32_t none;
} bt_qconv2d16_state;

/* All outputs of three positions. In the loop r0 points to taps and r1 to weights, r2-r4 hold a pair of taps of each
 * position, r7-r9 the first channel's sums and r10-r12 the second's. */
BT_SHARED void bt_qconv2d16_three(bt_qconv2d16_state *state, const int32_t *weight)
{
    register void *r0 __asm__("r0") = state;
    register const int32_t *r1 __asm__("r1") = weight;
#define BT_FIRST                                                                                                       \
    "smlad r7, r6, r2, r7\n\t"                                                                                         \
    "smlad r8, r6, r3, r8\n\t"                                                                                         \
    "smlad r9, r6, r4, r9\n\t"
#define BT_SECOND                                                                                                      \
    "smlad r10, r6, r2, r10\n\t"                                                                                       \
    "smlad r11, r6, r3, r11\n\t"                                                                                       \
    "smlad r12, r6, r4, r12\n\t"
#define BT_FOUR_TAPS                                                                                                   \
    "ldmia r0!, {r2-r4}\n\t"                                                                                           \
    "ldr r5, [r1]\n\t"                                                                                                 \
    "sxtb16 r6, r5\n\t" BT_FIRST "ldr r5, [r1, #4]\n\t"                                                                \
    "sxtb16 r6, r5\n\t" BT_SECOND "ldmia r0!, {r2-r4}\n\t"                                                             \
    "sxtb16 r6, r5, ror #8\n\t" BT_SECOND "ldr r5, [r1], #8\n\t"                                                       \
    "sxtb16 r6, r5, ror #8\n\t" BT_FIRST
#define BT_OUTPUT(first, second)                                                                                       \
    "smmulr " first ", " first ", r2\n\t"                                                                              \
    "smmulr " second ", " second ", r3\n\t"                                                                            \
    "ssat " first ", #16, " first "\n\t"                                                                               \
    "ssat " second ", #16, " second "\n\t"                                                                             \
    "pkhbt " first ", " first ", " second ", lsl #16\n\t"
    __asm__ volatile("str r7, [r0, #24]\n"
                     "1:\n\t"
                     "ldrd r7, r10, [r1], #8\n\t"
                     "ldrd lr, r0, [r0, #16]\n\t"
                     "mov r8, r7\n\t"
                     "mov r9, r7\n\t"
                     "mov r11, r10\n\t"
                     "mov r12, r10\n\t"
                     "lsrs lr, lr, #1\n\t"
                     "bcc 3f\n"
                     "2:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS "3:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS "subs lr, lr, #1\n\t"
                     "bne 2b\n\t"
                     "ldrd r2, r3, [r1], #8\n\t" /**/
                     BT_OUTPUT("r7", "r10") BT_OUTPUT("r8", "r11") BT_OUTPUT("r9", "r12") "ldrd r4, r2, [r0]\n\t"
                     "ldrd r3, r5, [r0, #8]\n\t"
                     "str r8, [r4, r2]\n\t"
                     "str r9, [r4, r3]\n\t"
                     "str r7, [r4], #4\n\t"
                     "str r4, [r0]\n\t"
                     "cmp r4, r5\n\t"
                     "bne 1b\n\t"
                     "ldr r7, [r0, #24]"
                     : "+r"(r0), "+r"(r1)
                     :
                     : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef BT_FIRST
#undef BT_SECOND
#undef BT_FOUR_TAPS
#undef BT_OUTPUT
}

/* The taps of one position, from (top, left) on, as pairs in every third word; of those that are not there anything. */
BT_INLINE void bt_qconv2d16_window(const bt_qconv2d *p, const int16_t *x, int32_t top, int32_t left, int32_t *words)
{
    int32_t tap = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = top + kh * p->dilation_h;
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int32_t w = left + kw * p->dilation_w;
            const int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            const int16_t *from = x + (h * p->in_w + w) * p->in;
            if (p->in % 2 == 0) {
                for (int32_t i = 0; i < p->in; i += 2, tap += 2) {
                    int32_t pair = 0;
                    if (inside)
                        __builtin_memcpy(&pair, from + i, 4);
                    words[3 * (tap >> 1)] = pair;
                }
            } else {
                for (int32_t i = 0; i < p->in; i++, tap++)
                    ((int16_t *)(words + 3 * (tap >> 1)))[tap & 1] = inside ? from[i] : 0;
            }
        }
    }
}

BT_KERNEL void bt_qconv2d16_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *weight, int16_t *y, void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) >> 3;
    int32_t *const windows = (int32_t *)scratch;
    bt_qconv2d16_state *const state = (bt_qconv2d16_state *)(windows + 12 * eights);
    state->eights = eights + 1;
    state->taps = windows;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int32_t top = -p->pad_top, left = -p->pad_left;
        for (int32_t outputs = p->out_h * p->out_w; outputs > 0; outputs -= 3) {
            for (int32_t k = 0; k < 3; k++) {
                bt_qconv2d16_window(p, x, top, left, windows + k);
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
            state->second = outputs > 1 ? 2 * p->out : 0;
            state->third = outputs > 2 ? 4 * p->out : state->second;
            bt_qconv2d16_three(state, weight);
            const int32_t made = state->third / 2 + p->out;
            for (int32_t i = 0; (p->lo > -32768 || p->hi < 32767) && i < made; i++)
                y[i] = (int16_t)bt_clamp_i32(y[i], p->lo, p->hi);
            y += made;
        }
    }
}
