/* What kernels for CV32E40P share: its own instructions (Xcv), as words, because not every assembler knows their names.
 *
 * A hardware loop costs nothing per turn. Its body has three instructions or more, all of four bytes. */
#ifndef BT_XCV_H
#define BT_XCV_H

#include "int8.h"

#define BT_XCV_LOOP(count, words)                                                                                      \
    ".balign 4\n\t.option push\n\t.option norvc\n\t.insn i 0x2b, 4, x14, " count ", " words " + 1\n\t" /* cv.setup */
#define BT_XCV_LOOP_END ".option pop"
#define BT_XCV_LW(rd, from) ".insn i 0x0b, 2, " rd ", " from ", 4\n\t"           /* cv.lw rd, (from), 4 */
#define BT_XCV_SW(rs, to) ".insn s 0x2b, 2, " rs ", 4(" to ")\n\t"               /* cv.sw rs, (to), 4 */
#define BT_XCV_DOT(sum, a, b) ".insn r 0x7b, 1, 0x54, " sum ", " a ", " b "\n\t" /* cv.sdotsp.b */

/* sum and the products of four bytes each */
BT_INLINE int32_t bt_xcv_dot(int32_t sum, int32_t a, int32_t b)
{
    __asm__(".insn r 0x7b, 1, 0x54, %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b)); /* cv.sdotsp.b */
    return sum;
}

/* The work of a layer: each output is a dot product of `words` words with its weights.
 * weight: [out / 4][words][4], the first count rounded up; bias and multiplier are as long. */
typedef struct {
    int32_t words, out;
    int32_t shift, zero, lo, hi;
    const int32_t *weight, *bias, *multiplier;
} bt_xcv_layer;

/* s[0..4) += the products of x with four outputs' weights: 9 instructions for 16. Gives what follows the weights. */
BT_INLINE const int32_t *bt_xcv_four(int32_t *s, const int8_t *x, const int32_t *w, int32_t words)
{
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], a, w0, w1, w2, w3;
    __asm__ volatile(BT_XCV_LOOP("%[n]", "9")
                     BT_XCV_LW("%[a]", "%[x]") BT_XCV_LW("%[w0]", "%[w]") BT_XCV_LW("%[w1]", "%[w]")
                     BT_XCV_LW("%[w2]", "%[w]") BT_XCV_LW("%[w3]", "%[w]")
                     BT_XCV_DOT("%[s0]", "%[a]", "%[w0]") BT_XCV_DOT("%[s1]", "%[a]", "%[w1]")
                     BT_XCV_DOT("%[s2]", "%[a]", "%[w2]") BT_XCV_DOT("%[s3]", "%[a]", "%[w3]")
                     BT_XCV_LOOP_END
                     : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [x] "+r"(x), [w] "+r"(w),
                       [a] "=&r"(a), [w0] "=&r"(w0), [w1] "=&r"(w1), [w2] "=&r"(w2), [w3] "=&r"(w3)
                     : [n] "r"(words)
                     : "memory");
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3;
    return w;
}

/* The same for two windows: 14 instructions for 32 products. */
BT_INLINE const int32_t *bt_xcv_four_by_two(int32_t *s, const int8_t *x, const int8_t *y, const int32_t *w, int32_t words)
{
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], t0 = s[4], t1 = s[5], t2 = s[6], t3 = s[7];
    int32_t a, b, w0, w1, w2, w3;
    __asm__ volatile(BT_XCV_LOOP("%[n]", "14")
                     BT_XCV_LW("%[w0]", "%[w]") BT_XCV_LW("%[w1]", "%[w]") BT_XCV_LW("%[w2]", "%[w]")
                     BT_XCV_LW("%[w3]", "%[w]") BT_XCV_LW("%[a]", "%[x]") BT_XCV_LW("%[b]", "%[y]")
                     BT_XCV_DOT("%[s0]", "%[a]", "%[w0]") BT_XCV_DOT("%[s1]", "%[a]", "%[w1]")
                     BT_XCV_DOT("%[s2]", "%[a]", "%[w2]") BT_XCV_DOT("%[s3]", "%[a]", "%[w3]")
                     BT_XCV_DOT("%[t0]", "%[b]", "%[w0]") BT_XCV_DOT("%[t1]", "%[b]", "%[w1]")
                     BT_XCV_DOT("%[t2]", "%[b]", "%[w2]") BT_XCV_DOT("%[t3]", "%[b]", "%[w3]")
                     BT_XCV_LOOP_END
                     : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [t0] "+r"(t0), [t1] "+r"(t1),
                       [t2] "+r"(t2), [t3] "+r"(t3), [x] "+r"(x), [y] "+r"(y), [w] "+r"(w), [a] "=&r"(a),
                       [b] "=&r"(b), [w0] "=&r"(w0), [w1] "=&r"(w1), [w2] "=&r"(w2), [w3] "=&r"(w3)
                     : [n] "r"(words)
                     : "memory");
    s[0] = s0, s[1] = s1, s[2] = s2, s[3] = s3, s[4] = t0, s[5] = t1, s[6] = t2, s[7] = t3;
    return w;
}

BT_INLINE int8_t bt_xcv_output(const bt_xcv_layer *l, int32_t sum, int32_t multiplier)
{
    return bt_requantize(sum, multiplier, l->shift, l->zero, l->lo, l->hi);
}

/* y[0..4) from their sums; fewer at the end of the layer. */
BT_INLINE void bt_xcv_put(const bt_xcv_layer *l, const int32_t *s, int32_t o, int8_t *y)
{
    const int32_t *const m = l->multiplier + o;
    const int32_t count = l->out - o;
    y[o] = bt_xcv_output(l, s[0], m[0]);
    if (count > 1)
        y[o + 1] = bt_xcv_output(l, s[1], m[1]);
    if (count > 2)
        y[o + 2] = bt_xcv_output(l, s[2], m[2]);
    if (count > 3)
        y[o + 3] = bt_xcv_output(l, s[3], m[3]);
}

/* The outputs of one window. */
BT_SHARED void bt_xcv_window(const bt_xcv_layer *layer, const int8_t *x, int8_t *y)
{
    const bt_xcv_layer l = *layer;
    const int32_t *w = l.weight;
    for (int32_t o = 0; o < l.out; o += 4) {
        const int32_t *const b = l.bias + o;
        int32_t s[4] = { b[0], b[1], b[2], b[3] };
        w = bt_xcv_four(s, x, w, l.words);
        bt_xcv_put(&l, s, o, y);
    }
}

/* Of two windows, whose outputs follow each other. */
BT_SHARED void bt_xcv_two_windows(const bt_xcv_layer *layer, const int8_t *x0, const int8_t *x1, int8_t *y)
{
    const bt_xcv_layer l = *layer;
    const int32_t *w = l.weight;
    for (int32_t o = 0; o < l.out; o += 4) {
        const int32_t *const b = l.bias + o;
        int32_t s[8] = { b[0], b[1], b[2], b[3], b[0], b[1], b[2], b[3] };
        w = bt_xcv_four_by_two(s, x0, x1, w, l.words);
        bt_xcv_put(&l, s, o, y);
        bt_xcv_put(&l, s + 4, o, y + l.out);
    }
}

/* to[0..n) = from[0..n); gives what follows. */
BT_INLINE int8_t *bt_xcv_copy(int8_t *to, const int8_t *from, int32_t n)
{
    int32_t eights = n >> 3, a, b;
    if (eights != 0) {
        __asm__ volatile(BT_XCV_LOOP("%[n]", "4")
                         BT_XCV_LW("%[a]", "%[from]") BT_XCV_LW("%[b]", "%[from]")
                         BT_XCV_SW("%[a]", "%[to]") BT_XCV_SW("%[b]", "%[to]")
                         BT_XCV_LOOP_END
                         : [to] "+r"(to), [from] "+r"(from), [a] "=&r"(a), [b] "=&r"(b)
                         : [n] "r"(eights)
                         : "memory");
    }
    for (n &= 7; n > 0; n--)
        *to++ = *from++;
    return to;
}

BT_INLINE int8_t *bt_xcv_fill(int8_t *to, int32_t value, int32_t n)
{
    for (; n > 0; n--)
        *to++ = (int8_t)value;
    return to;
}

#endif
