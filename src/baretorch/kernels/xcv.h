/* What kernels for CV32E40P share: its own instructions (Xcv), as words, because not every assembler knows their names.
 *
 * A hardware loop costs nothing per turn. Its body has three instructions or more, all of four bytes. */
#ifndef BT_XCV_H
#define BT_XCV_H

#include "int8.h"

#define BT_XCV_LOOP(count, words)                                                                                      \
    ".balign 4\n\t.option push\n\t.option norvc\n\t.insn i 0x2b, 4, x14, " count ", " words " + 1\n\t" /* cv.setup */
#define BT_XCV_LOOP_END ".option pop\n\t"
#define BT_XCV_LB(rd, from) ".insn i 0x0b, 0, " rd ", " from ", 1\n\t"                      /* cv.lb rd, (from), 1 */
#define BT_XCV_LW(rd, from) ".insn i 0x0b, 2, " rd ", " from ", 4\n\t"                      /* cv.lw rd, (from), 4 */
#define BT_XCV_LW_BY(rd, from, step) ".insn r 0x2b, 3, 0x02, " rd ", " from ", " step "\n\t" /* cv.lw rd, (from), step */
#define BT_XCV_SB(rs, to) ".insn s 0x2b, 0, " rs ", 1(" to ")\n\t"                          /* cv.sb rs, (to), 1 */
#define BT_XCV_SB_BY(rs, to, step) ".insn r 0x2b, 3, 0x10, " step ", " to ", " rs "\n\t"    /* cv.sb rs, (to), step */
#define BT_XCV_SW(rs, to) ".insn s 0x2b, 2, " rs ", 4(" to ")\n\t"                          /* cv.sw rs, (to), 4 */
#define BT_XCV_SW_BY(rs, to, step) ".insn r 0x2b, 3, 0x12, " step ", " to ", " rs "\n\t"    /* cv.sw rs, (to), step */
#define BT_XCV_DOT(sum, a, b) ".insn r 0x7b, 1, 0x54, " sum ", " a ", " b "\n\t"            /* cv.sdotsp.b */
#define BT_XCV_MAC(sum, a, b) ".insn r 0x2b, 3, 0x48, " sum ", " a ", " b "\n\t"            /* cv.mac */
#define BT_XCV_MAX(rd, a, b) ".insn r 0x2b, 3, 0x2d, " rd ", " a ", " b "\n\t"              /* cv.max */
#define BT_XCV_MIN(rd, a, b) ".insn r 0x2b, 3, 0x2b, " rd ", " a ", " b "\n\t"              /* cv.min */
#define BT_XCV_CLIP8(rd, a) ".insn r 0x2b, 3, 0x38, " rd ", " a ", x8\n\t"                  /* cv.clip rd, a, 8 */
#define BT_XCV_MAX_B(rd, a, b) ".insn r 0x7b, 1, 0x18, " rd ", " a ", " b "\n\t"            /* cv.max.b */
#define BT_XCV_MIN_B(rd, a, b) ".insn r 0x7b, 1, 0x10, " rd ", " a ", " b "\n\t"            /* cv.min.b */
#define BT_XCV_PACK_LOW(rd, a, b) ".insn r 0x7b, 1, 0x7c, " rd ", " a ", " b "\n\t"         /* cv.packlo.b */
#define BT_XCV_PACK_HIGH(rd, a, b) ".insn r 0x7b, 1, 0x7d, " rd ", " a ", " b "\n\t"        /* cv.packhi.b */
/* rd = (rd + a + 2^(n-1)) >> n, and without rounding */
#define BT_XCV_ROUND(rd, a, n) ".insn r 0x2b, 3, 0x42, " rd ", " a ", " n "\n\t" /* cv.addrnr */
#define BT_XCV_SHIFT(rd, a, n) ".insn r 0x2b, 3, 0x40, " rd ", " a ", " n "\n\t" /* cv.addnr */

/* sum and the products of four bytes each */
BT_INLINE int32_t bt_xcv_dot(int32_t sum, int32_t a, int32_t b)
{
    __asm__(BT_XCV_DOT("%0", "%1", "%2") : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

/* The larger of each of four bytes. */
BT_INLINE int32_t bt_xcv_max4(int32_t a, int32_t b)
{
    int32_t larger;
    __asm__(BT_XCV_MAX_B("%0", "%1", "%2") : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

/* Four bytes, which need not be aligned. */
BT_INLINE int32_t bt_xcv_word(const int8_t *x)
{
    int32_t word;
    __asm__("lw %0, 0(%1)" : "=r"(word) : "r"(x), "m"(*(const int8_t(*)[4])x));
    return word;
}

BT_INLINE void bt_xcv_put_word(int8_t *y, int32_t word)
{
    __asm__("sw %1, 0(%2)" : "=m"(*(int8_t(*)[4])y) : "r"(word), "r"(y));
}

/* From sums to outputs; docs/arithmetic.md has both rules. The wide one, with twice the multiplier as factor, is
 * (high word of (sum << left) * factor, + offset + rounding) >> right with offset = 2 * zero and right = 1; the narrow one
 * is the same with the low word, offset = zero << right and no left. */
typedef struct {
    int32_t narrow, left, offset, right;
    int32_t lo, hi;
} bt_xcv_rule;

BT_INLINE bt_xcv_rule bt_xcv_rule_of(int narrow, int32_t shift, int32_t zero, int32_t lo, int32_t hi)
{
    const bt_xcv_rule wide = { 0, shift, 2 * zero, 1, lo, hi };
    const bt_xcv_rule in_32_bits = { 1, 0, zero * (int32_t)(1u << shift), shift, lo, hi };
    return narrow ? in_32_bits : wide;
}

BT_INLINE int8_t bt_xcv_output(const bt_xcv_rule *r, int narrow, int32_t sum, int32_t factor)
{
    int32_t v = narrow ? (int32_t)((uint32_t)sum * (uint32_t)factor)
                       : (int32_t)(((int64_t)(int32_t)((uint32_t)sum << r->left) * (int64_t)(uint32_t)factor) >> 32);
    __asm__(BT_XCV_ROUND("%0", "%1", "%2") : "+&r"(v) : "r"(r->offset), "r"(r->right));
    return (int8_t)bt_clamp_i32(v, r->lo, r->hi);
}

/* The work of a layer: each output is a dot product of `words` words with its weights.
 * constants: for each four outputs, of which the last may be none, 4 biases, weights as [words][4], 4 factors. */
typedef struct {
    int32_t words, out;
    bt_xcv_rule rule;
    const int32_t *constants;
} bt_xcv_layer;

/* Add the dot products of `count` words with the weights of four outputs to s0-s3; x and w move on. The macro uses the
 * variables of its function. 9 instructions for 16 products. */
#define BT_XCV_WORDS(count)                                                                                            \
    __asm__ volatile(BT_XCV_LOOP("%[n]", "9")                                                                          \
                     BT_XCV_LW("%[a]", "%[x]") BT_XCV_LW("%[w0]", "%[w]") BT_XCV_LW("%[w1]", "%[w]")                   \
                     BT_XCV_LW("%[w2]", "%[w]") BT_XCV_LW("%[w3]", "%[w]")                                             \
                     BT_XCV_DOT("%[s0]", "%[a]", "%[w0]") BT_XCV_DOT("%[s1]", "%[a]", "%[w1]")                         \
                     BT_XCV_DOT("%[s2]", "%[a]", "%[w2]") BT_XCV_DOT("%[s3]", "%[a]", "%[w3]")                         \
                     BT_XCV_LOOP_END                                                                                   \
                     : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3), [x] "+&r"(x), [w] "+&r"(w),     \
                       [a] "=&r"(a), [w0] "=&r"(w0), [w1] "=&r"(w1), [w2] "=&r"(w2), [w3] "=&r"(w3)                    \
                     : [n] "r"(count)                                                                                  \
                     : "memory")

/* Of four outputs that begin with output `o`, up to the last. Returns the address after their constants. */
BT_INLINE const int32_t *bt_xcv_four(const bt_xcv_layer *l, int narrow, const int32_t *w, const int8_t *x, int32_t o,
                                     int8_t *y)
{
    int32_t s0 = w[0], s1 = w[1], s2 = w[2], s3 = w[3], a, w0, w1, w2, w3;
    const int32_t count = l->out - o;
    w += 4;
    BT_XCV_WORDS(l->words);
    y[o] = bt_xcv_output(&l->rule, narrow, s0, w[0]);
    if (count > 1)
        y[o + 1] = bt_xcv_output(&l->rule, narrow, s1, w[1]);
    if (count > 2)
        y[o + 2] = bt_xcv_output(&l->rule, narrow, s2, w[2]);
    if (count > 3)
        y[o + 3] = bt_xcv_output(&l->rule, narrow, s3, w[3]);
    return w + 4;
}

/* The outputs of one window. */
BT_SHARED void bt_xcv_window(const bt_xcv_layer *layer, const int8_t *x, int8_t *y)
{
    const bt_xcv_layer l = *layer;
    const int32_t *w = l.constants;
    if (l.rule.narrow) {
        for (int32_t o = 0; o < l.out; o += 4)
            w = bt_xcv_four(&l, 1, w, x, o, y);
    } else {
        for (int32_t o = 0; o < l.out; o += 4)
            w = bt_xcv_four(&l, 0, w, x, o, y);
    }
}

/* Four windows at a time, and of each four outputs: 24 instructions for 64 products, 2.7 in a cycle. All registers that
 * there are hold sums, operands and pointers, so that the rest is in memory. */
typedef struct {
    const int8_t *x[4];
    const int32_t *constants;
    int8_t *y;
    int32_t step[3]; /* from a window's outputs to those of the next */
    int32_t words, fours;
    int32_t offset, right, lo, hi; /* limits in each byte */
} bt_xcv_block;

#define BT_XCV_FOUR_SUMS(multiply, s0, s1, s2, s3)                                                                     \
    multiply " " s0 ", " s0 ", t0\n\t" multiply " " s1 ", " s1 ", t1\n\t" multiply " " s2 ", " s2 ", t2\n\t"           \
    multiply " " s3 ", " s3 ", ra\n\t"                                                                                 \
    BT_XCV_ROUND(s0, "a1", "a2") BT_XCV_ROUND(s1, "a1", "a2") BT_XCV_ROUND(s2, "a1", "a2") BT_XCV_ROUND(s3, "a1", "a2") \
    BT_XCV_CLIP8(s0, s0) BT_XCV_CLIP8(s1, s1) BT_XCV_CLIP8(s2, s2) BT_XCV_CLIP8(s3, s3)                                \
    BT_XCV_PACK_LOW("a7", s1, s0) BT_XCV_PACK_HIGH("a7", s3, s2)                                                       \
    BT_XCV_MAX_B("a7", "a7", "a3") BT_XCV_MIN_B("a7", "a7", "a4") "sw a7, 0(a5)\n\t"

#define BT_XCV_FOUR_DOTS(x, s0, s1, s2, s3)                                                                            \
    BT_XCV_DOT(s0, x, "t0") BT_XCV_DOT(s1, x, "t1") BT_XCV_DOT(s2, x, "t2") BT_XCV_DOT(s3, x, "ra")

#define BT_XCV_FOUR_BY_FOUR(name, multiply)                                                                            \
    BT_SHARED void name(bt_xcv_block *block)                                                                           \
    {                                                                                                                  \
        register bt_xcv_block *at __asm__("a0") = block;                                                               \
        __asm__ volatile(                                                                                              \
            "1:\n\t"                                                                                                   \
            "lw a5, 16(a0)\n\tlw a1, 0(a0)\n\tlw a2, 4(a0)\n\tlw a3, 8(a0)\n\tlw a4, 12(a0)\n\tlw a6, 36(a0)\n\t"      \
            BT_XCV_LW("s0", "a5") BT_XCV_LW("s1", "a5") BT_XCV_LW("s2", "a5") BT_XCV_LW("s3", "a5")                    \
            "mv s4, s0\n\tmv s5, s1\n\tmv s6, s2\n\tmv s7, s3\n\tmv s8, s0\n\tmv s9, s1\n\tmv s10, s2\n\tmv s11, s3\n\t" \
            "mv t3, s0\n\tmv t4, s1\n\tmv t5, s2\n\tmv t6, s3\n\t"                                                     \
            BT_XCV_LOOP("a6", "24")                                                                                    \
            BT_XCV_LW("t0", "a5") BT_XCV_LW("t1", "a5") BT_XCV_LW("t2", "a5") BT_XCV_LW("ra", "a5")                    \
            BT_XCV_LW("a6", "a1") BT_XCV_LW("a7", "a2")                                                                \
            BT_XCV_FOUR_DOTS("a6", "s0", "s1", "s2", "s3") BT_XCV_LW("a6", "a3")                                       \
            BT_XCV_FOUR_DOTS("a7", "s4", "s5", "s6", "s7") BT_XCV_LW("a7", "a4")                                       \
            BT_XCV_FOUR_DOTS("a6", "s8", "s9", "s10", "s11")                                                           \
            BT_XCV_FOUR_DOTS("a7", "t3", "t4", "t5", "t6")                                                             \
            BT_XCV_LOOP_END                                                                                            \
            BT_XCV_LW("t0", "a5") BT_XCV_LW("t1", "a5") BT_XCV_LW("t2", "a5") BT_XCV_LW("ra", "a5")                    \
            "sw a5, 16(a0)\n\tlw a5, 20(a0)\n\tlw a1, 44(a0)\n\tlw a2, 48(a0)\n\tlw a3, 52(a0)\n\tlw a4, 56(a0)\n\t"   \
            "addi a6, a5, 4\n\tsw a6, 20(a0)\n\tlw a6, 24(a0)\n\t"                                                     \
            BT_XCV_FOUR_SUMS(multiply, "s0", "s1", "s2", "s3") "add a5, a5, a6\n\tlw a6, 28(a0)\n\t"                   \
            BT_XCV_FOUR_SUMS(multiply, "s4", "s5", "s6", "s7") "add a5, a5, a6\n\tlw a6, 32(a0)\n\t"                   \
            BT_XCV_FOUR_SUMS(multiply, "s8", "s9", "s10", "s11") "add a5, a5, a6\n\tlw a6, 40(a0)\n\t"                 \
            BT_XCV_FOUR_SUMS(multiply, "t3", "t4", "t5", "t6")                                                         \
            "addi a6, a6, -1\n\tsw a6, 40(a0)\n\tbnez a6, 1b\n\t"                                                      \
            : "+&r"(at)                                                                                                \
            :                                                                                                          \
            : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8",    \
              "s9", "s10", "s11", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "memory");                                 \
    }

BT_XCV_FOUR_BY_FOUR(bt_xcv_four_wide, "mulhsu")
BT_XCV_FOUR_BY_FOUR(bt_xcv_four_narrow, "mul")

/* Windows that wait for others, up to four. */
typedef struct {
    const int8_t *x[4];
    int8_t *y[4];
    int32_t count;
} bt_xcv_windows;

/* Makes their outputs. Where there are less than four the last is made several times. */
BT_INLINE void bt_xcv_make(const bt_xcv_layer *l, bt_xcv_windows *windows)
{
    const int32_t count = windows->count, fours = l->out >> 2;
    windows->count = 0;
    if (count < 2 || l->rule.left != 0 || fours == 0) {
        for (int32_t i = 0; i < count; i++)
            bt_xcv_window(l, windows->x[i], windows->y[i]);
        return;
    }
    bt_xcv_block b = { .constants = l->constants, .y = windows->y[0], .words = l->words, .fours = fours,
                       .offset = l->rule.offset, .right = l->rule.right,
                       .lo = (int32_t)(0x01010101u * (uint8_t)l->rule.lo),
                       .hi = (int32_t)(0x01010101u * (uint8_t)l->rule.hi) };
    for (int32_t i = count; i < 4; i++) {
        windows->x[i] = windows->x[count - 1];
        windows->y[i] = windows->y[count - 1];
    }
    for (int32_t i = 0; i < 4; i++) {
        b.x[i] = windows->x[i];
        if (i != 0)
            b.step[i - 1] = (int32_t)(windows->y[i] - windows->y[i - 1]);
    }
    if (l->rule.narrow)
        bt_xcv_four_narrow(&b);
    else
        bt_xcv_four_wide(&b);
    if ((l->out & 3) != 0) {
        for (int32_t i = 0; i < count; i++) {
            if (l->rule.narrow)
                bt_xcv_four(l, 1, b.constants, windows->x[i], 4 * fours, windows->y[i]);
            else
                bt_xcv_four(l, 0, b.constants, windows->x[i], 4 * fours, windows->y[i]);
        }
    }
}

/* One more; when there are four they are made. */
BT_INLINE void bt_xcv_add(const bt_xcv_layer *l, bt_xcv_windows *windows, const int8_t *x, int8_t *y)
{
    windows->x[windows->count] = x;
    windows->y[windows->count] = y;
    if (++windows->count == 4)
        bt_xcv_make(l, windows);
}

/* to[0..n) = from[0..n); returns from + n. */
BT_INLINE int8_t *bt_xcv_copy(int8_t *to, const int8_t *from, int32_t n)
{
    int32_t eights = n >> 3, a, b;
    if (eights != 0) {
        __asm__ volatile(BT_XCV_LOOP("%[n]", "4")
                         BT_XCV_LW("%[a]", "%[from]") BT_XCV_LW("%[b]", "%[from]")
                         BT_XCV_SW("%[a]", "%[to]") BT_XCV_SW("%[b]", "%[to]")
                         BT_XCV_LOOP_END
                         : [to] "+&r"(to), [from] "+&r"(from), [a] "=&r"(a), [b] "=&r"(b)
                         : [n] "r"(eights)
                         : "memory");
    }
    if ((n & 4) != 0) {
        bt_xcv_put_word(to, bt_xcv_word(from));
        to += 4;
        from += 4;
    }
    for (n &= 3; n > 0; n--)
        *to++ = *from++;
    return to;
}

BT_INLINE int8_t *bt_xcv_fill(int8_t *to, int32_t value, int32_t n)
{
    for (; n >= 4; n -= 4, to += 4)
        bt_xcv_put_word(to, (int32_t)(0x01010101u * (uint8_t)value));
    for (; n > 0; n--)
        *to++ = (int8_t)value;
    return to;
}

/* A function that brings a window to whole words. Its first tap is at (top, left), which may be outside of the image.
 * The field `stride` of `params` has the bytes from one pixel to the next. */
#define BT_XCV_BRING(symbol, params, stride)                                                                           \
    BT_INLINE void symbol(const params *p, const int8_t *x, int32_t top, int32_t left, int8_t *to)                     \
    {                                                                                                                  \
        const int32_t run = p->kernel_w * p->in;                                                                       \
        const int together = p->in == p->stride && p->dilation_w == 1 && left >= 0 && left + p->kernel_w <= p->in_w;   \
        for (int32_t kh = 0; kh < p->kernel_h; kh++) {                                                                 \
            const int32_t h = top + kh * p->dilation_h;                                                                \
            const int8_t *const row = x + h * p->in_w * p->stride;                                                     \
            if (h < 0 || h >= p->in_h) {                                                                               \
                to = bt_xcv_fill(to, p->x_zero, run);                                                                  \
            } else if (together) {                                                                                     \
                to = bt_xcv_copy(to, row + left * p->in, run);                                                         \
            } else {                                                                                                   \
                for (int32_t kw = 0; kw < p->kernel_w; kw++) {                                                         \
                    const int32_t w = left + kw * p->dilation_w;                                                       \
                    if (w < 0 || w >= p->in_w)                                                                         \
                        to = bt_xcv_fill(to, p->x_zero, p->in);                                                        \
                    else                                                                                               \
                        to = bt_xcv_copy(to, row + w * p->stride, p->in);                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        bt_xcv_fill(to, 0, -(p->kernel_h * run) & 3);                                                                  \
    }

#endif
