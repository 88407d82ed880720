/* Three positions of qconv2d at a time, around a function that computes their outputs, for cores with the DSP
 * extension. */
#ifndef BT_QCONV2D_THREES_DSP_H
#define BT_QCONV2D_THREES_DSP_H

#include "windows_dsp.h"

/* This must be right after the windows, because the pointer that ran through them continues here. */
typedef struct {
    int8_t *y;           /* the first position's next output */
    int32_t zero;        /* of y */
    int32_t fine;        /* 256 times that, and half of 256 */
    const int32_t *taps; /* [taps / 2][3] pairs of halfwords */
    int32_t second;      /* from the first position's outputs to the second's */
    int32_t third;       /* and to the third's */
    const int8_t *end;   /* of the first position's outputs */
    const void *kept;    /* place for a word */
} bt_qconv2d_state;

/* Two channels of a position from their sums, of which the second is 256 times its own plus the first: r2 and r3 have
 * the multipliers, r5 and r6 the zero point as a state has it. */
#define BT_QCONV2D_OUTPUTS(first, second)                                                                                       \
    "sub " second ", " second ", " first "\n\t"                                                                        \
    "smmlar " first ", " first ", r2, r5\n\t"                                                                          \
    "smmla " second ", " second ", r3, r6\n\t"                                                                         \
    "ssat " first ", #8, " first "\n\t"                                                                                \
    "ssat " second ", #8, " second ", asr #8\n\t"                                                                      \
    "bfi " first ", " second ", #8, #8\n\t"

/* All outputs of three positions. `turns` describes how it runs through their taps. */
typedef void bt_qconv2d_run(bt_qconv2d_state *state, const int32_t *weight, int32_t turns);

/* Where a window begins; `from` is there in the image, if it is. */
typedef struct {
    int32_t top, left;
    const int8_t *from;
} bt_qconv2d_corner;

/* Expand `rows` of `count` bytes, a multiple of four, of three windows; rows are `down` bytes apart. 13 instructions for
 * 12 bytes. */
BT_SHARED int32_t *bt_qconv2d_expand_three(int32_t *to, const int8_t *const from[3], int32_t count, int32_t rows,
                                           int32_t down)
{
    const int8_t *a = from[0], *b = from[1], *c = from[2];
    for (; rows > 0; rows--, a += down, b += down, c += down) {
        const int8_t *const end = a + count;
        __asm__ volatile("1:\n\t"
                         "ldr r3, [%[b]], #4\n\t"
                         "ldr r4, [%[c]], #4\n\t"
                         "ldr r2, [%[a]], #4\n\t"
                         "sxtb16 r5, r2, ror #8\n\t"
                         "sxtb16 r6, r3, ror #8\n\t"
                         "sxtb16 lr, r4, ror #8\n\t"
                         "sxtb16 r2, r2\n\t"
                         "sxtb16 r3, r3\n\t"
                         "sxtb16 r4, r4\n\t"
                         "stmia %[to]!, {r2, r3, r4}\n\t"
                         "stmia %[to]!, {r5, r6, lr}\n\t"
                         "cmp %[a], %[end]\n\t"
                         "bne 1b"
                         : [to] "+&r"(to), [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c)
                         : [end] "r"(end)
                         : "r2", "r3", "r4", "r5", "r6", "lr", "cc", "memory");
    }
    return to;
}

/* Three windows that are contiguous in the image, as halfwords next to each other: the fours of bytes of every row of a
 * window, then the rest of all rows, then anything up to a multiple of four. */
BT_INLINE void bt_qconv2d_three_inside(const bt_qconv2d *p, const int8_t *from[3], int32_t *to, int8_t *bytes)
{
    const int32_t row = p->kernel_w * p->in, fours = row & ~3, rest = row & 3;
    const int32_t left_over = (p->kernel_h * rest + 3) & ~3;
    const int32_t down = p->dilation_h * p->in_w * p->in;
    if (fours > 0)
        to = bt_qconv2d_expand_three(to, from, fours, p->kernel_h, down - fours);
    if (rest == 1 && p->kernel_h <= 4) {
        BT_UNROLL_4
        for (int32_t k = 0; k < 3; k++) {
            const int8_t *const at = from[k] + fours;
            to[k] = p->kernel_h > 2 ? bt_low_pair(at[0], at[2 * down]) : at[0];
            if (p->kernel_h > 1)
                to[3 + k] = p->kernel_h > 3 ? bt_low_pair(at[down], at[3 * down]) : at[down];
        }
    } else if (rest > 0) {
        BT_UNROLL_4
        for (int32_t k = 0; k < 3; k++) {
            int8_t *const own = bytes + k * left_over;
            for (int32_t kh = 0; kh < p->kernel_h; kh++)
                for (int32_t i = 0; i < rest; i++)
                    own[kh * rest + i] = from[k][kh * down + fours + i];
            from[k] = own;
        }
        bt_qconv2d_expand_three(to, from, left_over, 1, 0);
    }
}

/* The same of windows anywhere. */
BT_INLINE void bt_qconv2d_three_windows(const bt_qconv2d *p, int padded, const int8_t *x, const bt_qconv2d_corner at[3],
                                        int32_t *to, int8_t *bytes)
{
    const int32_t row = p->kernel_w * p->in, fours = row & ~3, rest = row & 3;
    const int32_t last = (p->kernel_h - 1) * p->dilation_h;
    const int8_t *from[3];
    int inside = p->kernel_w == 1 || p->dilation_w == 1;
    BT_UNROLL_4
    for (int32_t k = 0; k < 3; k++) {
        from[k] = at[k].from;
        inside = inside
                 && (!padded || (at[k].top >= 0 && at[k].top + last < p->in_h && at[k].left >= 0
                                 && at[k].left + p->kernel_w <= p->in_w));
    }
    if (inside) {
        bt_qconv2d_three_inside(p, from, to, bytes);
    } else if (p->in % 4 == 0) {
        for (int32_t kh = 0; kh < p->kernel_h; kh++) {
            for (int32_t kw = 0; kw < p->kernel_w; kw++) {
                for (int32_t k = 0; k < 3; k++) {
                    const int32_t h = at[k].top + kh * p->dilation_h, w = at[k].left + kw * p->dilation_w;
                    const int outside = h < 0 || h >= p->in_h || w < 0 || w >= p->in_w;
                    from[k] = outside ? bytes : x + (h * p->in_w + w) * p->in;
                }
                to = bt_qconv2d_expand_three(to, from, p->in, 1, 0);
            }
        }
    } else {
        for (int32_t k = 0; k < 3; k++) {
            int32_t *next = to + k;
            bt_qconv2d_gather(p, x, at[k].top, at[k].left, bytes);
            for (int32_t kh = 0; kh < p->kernel_h; kh++) {
                next = bt_qconv2d_expand(next, 3, bytes + kh * row, fours);
                for (int32_t i = 0; i < rest; i++) /* never ahead of unread bytes */
                    bytes[kh * rest + i] = bytes[kh * row + fours + i];
            }
            bt_qconv2d_expand(next, 3, bytes, (p->kernel_h * rest + 3) & ~3);
        }
    }
}

/* Positions of y are *y_stride apart; `dense`: that is p->out itself, nothing is cut. `taps`: those of a window, rounded
 * up. `more`: bytes after the state that `three` has for itself. */
BT_INLINE void bt_qconv2d_threes(bt_qconv2d_run *three, int32_t taps, int32_t turns, int32_t more, const bt_qconv2d *p,
                                 const int32_t *y_stride, int dense, const int8_t *x, const int32_t *weight, int8_t *y,
                                 void *scratch)
{
    int32_t *const windows = (int32_t *)scratch;
    bt_qconv2d_state *const state = (bt_qconv2d_state *)(windows + taps / 2 * 3);
    int8_t *const bytes = (int8_t *)(state + 1) + more;
    const int padded = p->pad_top > 0 || p->pad_left > 0
                       || (p->out_h - 1) * p->stride_h + (p->kernel_h - 1) * p->dilation_h >= p->in_h + p->pad_top
                       || (p->out_w - 1) * p->stride_w + (p->kernel_w - 1) * p->dilation_w >= p->in_w + p->pad_left;
    if (padded && p->in % 4 == 0)
        bt_fill_bytes(bytes, p->x_zero, p->in); /* a pixel outside */
    state->zero = p->zero;
    state->fine = 256 * p->zero + 128;
    state->taps = windows;
    /* If every pixel is a window, rows need not be separated. */
    const int flat = p->kernel_h * p->kernel_w == 1 && p->stride_h * p->stride_w == 1 && !padded && p->out_w == p->in_w;
    const int32_t width = flat ? p->out_h * p->out_w : p->out_w;
    for (int32_t n = 0; n < p->batch; n++) {
        bt_qconv2d_corner next = { -p->pad_top, -p->pad_left, x - (p->pad_top * p->in_w + p->pad_left) * p->in };
        int32_t left_in_row = width;
        state->second = *y_stride;
        state->third = 2 * *y_stride;
        for (int32_t outputs = p->out_h * p->out_w; outputs > 0; outputs -= 3) {
            if (left_in_row >= 3 && (p->kernel_w == 1 || p->dilation_w == 1)
                && (!padded
                    || ((p->pad_top == 0 || next.top >= 0) && (p->pad_left == 0 || next.left >= 0)
                        && next.top + (p->kernel_h - 1) * p->dilation_h < p->in_h
                        && next.left + 2 * p->stride_w + p->kernel_w <= p->in_w))) {
                const int8_t *from[3] = { next.from, next.from + p->stride_w * p->in,
                                          next.from + 2 * p->stride_w * p->in };
                bt_qconv2d_three_inside(p, from, windows, bytes);
                next.left += 3 * p->stride_w;
                next.from += 3 * p->stride_w * p->in;
                left_in_row -= 3;
                if (!flat && left_in_row == 0) {
                    left_in_row = width;
                    next.left = -p->pad_left;
                    next.top += p->stride_h;
                    next.from += (p->stride_h * p->in_w - p->out_w * p->stride_w) * p->in;
                }
            } else {
                bt_qconv2d_corner at[3];
                BT_UNROLL_4
                for (int32_t k = 0; k < 3; k++) {
                    at[k] = next;
                    if (k + 1 < outputs) { /* else the last position is repeated */
                        next.left += p->stride_w;
                        next.from += p->stride_w * p->in;
                        if (--left_in_row == 0) {
                            left_in_row = width;
                            next.left = -p->pad_left;
                            next.top += p->stride_h;
                            next.from += (p->stride_h * p->in_w - p->out_w * p->stride_w) * p->in;
                        }
                    }
                }
                bt_qconv2d_three_windows(p, padded, x, at, windows, bytes);
                if (outputs < 3) {
                    state->second = outputs > 1 ? *y_stride : 0;
                    state->third = state->second;
                }
            }
            state->y = y;
            state->end = y + p->out;
            three(state, weight, turns);
            const int32_t made = (outputs > 2 ? 2 : outputs - 1) * *y_stride + p->out;
            for (int32_t i = 0; (p->lo > -128 || p->hi < 127) && i < made; i++)
                if (dense || i % *y_stride < p->out)
                    y[i] = (int8_t)bt_clamp_i32(y[i], p->lo, p->hi);
            y += dense ? made : made - p->out + *y_stride;
        }
        x += p->in_h * p->in_w * p->in;
    }
}

#endif
