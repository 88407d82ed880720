/* qconv2d16 for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * The windows of three positions are next to each other, a pair of taps of each; two output channels at a time run over
 * them. A word of weights has two taps of both channels, and is extended once for each. 19 instructions for 24
 * products, and 31 for six outputs.
 *
 * All three windows are read before their outputs are written. */
#include "qconv2d16.h"

#include "../dsp.h"

#define BT_TURN 4  /* fours of taps in a turn of the loop, */
#define BT_FOUR 72 /* and bytes of code for each */

/* This must be right after the windows, because the pointer that ran through them continues here. */
typedef struct {
    int16_t *y;          /* the first position's next output */
    int32_t second;      /* bytes from the first position's outputs to the second's */
    int32_t third;       /* and to the third's */
    const int16_t *end;  /* of the first position's outputs */
    int32_t skip;        /* bytes of code that the first turn leaves out, and 1, as addresses of code have it */
    const void *first;   /* where in the loop it begins, which bt_qconv2d16_three writes */
    const int32_t *taps; /* [taps / 2][3] pairs of halfwords */
} bt_qconv2d16_state;

/* All outputs of three positions. The loop takes taps in turns, of which the first begins so late that the last ends with
 * the last tap. In it r0 points to taps and r1 to weights, r2-r4 hold a pair of taps of each position, r5 and r6 weights
 * of two channels and then those of the second, lr those of the first, r7-r9 are the first channel's sums and r10-r12 the
 * second's. What r0 ends at is on the stack, and so is r7, which compilers may use as frame pointer. */
BT_SHARED void bt_qconv2d16_three(bt_qconv2d16_state *state, const int32_t *weight)
{
    register void *r0 __asm__("r0") = state;
    register const int32_t *r1 __asm__("r1") = weight;
#define BT_TWO_TAPS(w)                                                                                                 \
    "ldmia.n r0!, {r2-r4}\n\t"                                                                                         \
    "sxtb16 lr, " w "\n\t"                                                                                             \
    "sxtb16 " w ", " w ", ror #8\n\t"                                                                                  \
    "smlad r7, lr, r2, r7\n\t"                                                                                         \
    "smlad r8, lr, r3, r8\n\t"                                                                                         \
    "smlad r9, lr, r4, r9\n\t"                                                                                         \
    "smlad r10, " w ", r2, r10\n\t"                                                                                    \
    "smlad r11, " w ", r3, r11\n\t"                                                                                    \
    "smlad r12, " w ", r4, r12\n\t"
#define BT_FOUR_TAPS "ldrd r5, r6, [r1], #8\n\t" BT_TWO_TAPS("r5") BT_TWO_TAPS("r6")
#define BT_OUTPUT(first, second)                                                                                       \
    "smmulr " first ", " first ", r2\n\t"                                                                              \
    "smmulr " second ", " second ", r3\n\t"                                                                            \
    "ssat " first ", #16, " first "\n\t"                                                                               \
    "ssat " second ", #16, " second "\n\t"                                                                             \
    "pkhbt " first ", " first ", " second ", lsl #16\n\t"
    __asm__ volatile("push {r0, r7}\n\t"
                     "ldr r2, [r0, #16]\n\t"
                     "adr.w r3, 2f\n\t"
                     "add r2, r2, r3\n\t"
                     "str r2, [r0, #20]\n"
                     "1:\n\t"
                     "ldrd r7, r10, [r1], #8\n\t"
                     "ldrd r2, r0, [r0, #20]\n\t"
                     "mov r8, r7\n\t"
                     "mov r9, r7\n\t"
                     "mov r11, r10\n\t"
                     "mov r12, r10\n\t"
                     "bx r2\n\t"
                     ".p2align 2\n"
                     "2:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS BT_FOUR_TAPS BT_FOUR_TAPS "ldr lr, [sp]\n\t"
                     "cmp r0, lr\n\t"
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
                     "pop {r0, r7}"
                     : "+&r"(r0), "+&r"(r1)
                     :
                     : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#undef BT_TWO_TAPS
#undef BT_FOUR_TAPS
#undef BT_OUTPUT
}

typedef struct {
    int32_t top, left;
} bt_qconv2d16_corner;

/* `count` numbers, a multiple of two, of each of three windows. 10 instructions for 12 numbers. */
BT_SHARED int32_t *bt_qconv2d16_copy(int32_t *to, const int16_t *const from[3], int32_t count)
{
    const int16_t *a = from[0], *b = from[1], *c = from[2];
#define BT_PAIRS                                                                                                       \
    "ldr r4, [%[a]], #4\n\t"                                                                                           \
    "ldr r5, [%[b]], #4\n\t"                                                                                           \
    "ldr r6, [%[c]], #4\n\t"                                                                                           \
    "stmia %[to]!, {r4, r5, r6}\n\t"
    __asm__ volatile("tst %[count], #2\n\t"
                     "bne 2f\n"
                     "1:\n\t" BT_PAIRS "2:\n\t" BT_PAIRS "cmp %[a], %[end]\n\t"
                     "bne 1b"
                     : [to] "+&r"(to), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)
                     : [end] "r"(a + count), [count] "r"(count)
                     : "r4", "r5", "r6", "cc", "memory");
#undef BT_PAIRS
    return to;
}

/* Which windows have all of `width` pixels, side by side from (kh, kw) on, within x, as bits; and where these are. */
BT_INLINE int bt_qconv2d16_find(const bt_qconv2d *p, const int16_t *x, const bt_qconv2d16_corner at[3], int32_t kh,
                                int32_t kw, int32_t width, const int16_t *from[3])
{
    int found = 0;
    BT_UNROLL_4
    for (int32_t k = 0; k < 3; k++) {
        const int32_t h = at[k].top + kh * p->dilation_h, w = at[k].left + kw * p->dilation_w;
        from[k] = x + (h * p->in_w + w) * p->in;
        found |= (h >= 0 && h < p->in_h && w >= 0 && w + width <= p->in_w) << k;
    }
    return found;
}

/* Three windows of an even number of channels side by side; of taps that are not there anything. */
BT_INLINE void bt_qconv2d16_windows(const bt_qconv2d *p, const int16_t *x, const bt_qconv2d16_corner at[3], int32_t *to)
{
    const int16_t *from[3];
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        if (p->dilation_w == 1 && bt_qconv2d16_find(p, x, at, kh, 0, p->kernel_w, from) == 7) {
            to = bt_qconv2d16_copy(to, from, p->kernel_w * p->in);
            continue;
        }
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int found = bt_qconv2d16_find(p, x, at, kh, kw, 1, from);
            if (found == 7) {
                to = bt_qconv2d16_copy(to, from, p->in);
                continue;
            }
            for (int32_t i = 0; i < p->in; i += 2)
                for (int32_t k = 0; k < 3; k++)
                    *to++ = found >> k & 1 ? bt_load4((const int8_t *)(from[k] + i)) : 0;
        }
    }
}

/* One window of an odd number of channels, in every third word. */
BT_INLINE void bt_qconv2d16_window(const bt_qconv2d *p, const int16_t *x, bt_qconv2d16_corner at, int32_t *to)
{
    int32_t tap = 0;
    for (int32_t kh = 0; kh < p->kernel_h; kh++) {
        const int32_t h = at.top + kh * p->dilation_h;
        for (int32_t kw = 0; kw < p->kernel_w; kw++) {
            const int32_t w = at.left + kw * p->dilation_w;
            const int inside = h >= 0 && h < p->in_h && w >= 0 && w < p->in_w;
            const int16_t *from = x + (h * p->in_w + w) * p->in;
            for (int32_t i = 0; i < p->in; i++, tap++)
                ((int16_t *)(to + 3 * (tap >> 1)))[tap & 1] = inside ? from[i] : 0;
        }
    }
}

BT_KERNEL void bt_qconv2d16_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *weight, int16_t *y, void *scratch)
{
    const int32_t fours = (p->kernel_h * p->kernel_w * p->in + 3) >> 2;
    int32_t *const windows = (int32_t *)scratch;
    bt_qconv2d16_state *const state = (bt_qconv2d16_state *)(windows + 6 * fours);
    state->skip = (-fours & (BT_TURN - 1)) * BT_FOUR + 1;
    state->taps = windows;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        bt_qconv2d16_corner next = { -p->pad_top, -p->pad_left };
        for (int32_t outputs = p->out_h * p->out_w; outputs > 0; outputs -= 3) {
            bt_qconv2d16_corner at[3];
            BT_UNROLL_4
            for (int32_t k = 0; k < 3; k++) {
                at[k] = next;
                if (k + 1 < outputs) { /* else the last position is repeated */
                    next.left += p->stride_w;
                    if (next.left == p->out_w * p->stride_w - p->pad_left) {
                        next.left = -p->pad_left;
                        next.top += p->stride_h;
                    }
                }
            }
            if (p->in % 2 == 0)
                bt_qconv2d16_windows(p, x, at, windows);
            else
                for (int32_t k = 0; k < 3; k++)
                    bt_qconv2d16_window(p, x, at[k], windows + k);
            state->y = y;
            state->end = y + p->out;
            state->second = outputs > 1 ? 2 * p->out : 0;
            state->third = outputs > 2 ? 4 * p->out : state->second;
            bt_qconv2d16_three(state, weight);
            const int32_t made = state->third / 2 + p->out;
            const int32_t limited = p->lo > -32768 || p->hi < 32767 ? made : 0;
            BT_UNROLL_4
            for (int32_t i = 0; i < limited; i += 2) {
                const int32_t pair = bt_limit_halves(bt_load4((const int8_t *)(y + i)), p->lo, p->hi);
                __builtin_memcpy(y + i, &pair, 4);
            }
            y += made;
        }
    }
}

#undef BT_TURN
#undef BT_FOUR
