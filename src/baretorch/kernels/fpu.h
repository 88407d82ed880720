/* Sums of products for Arm cores with a single-precision FPU (Cortex-M4F, M7, M33).
 *
 * Eight outputs of one or two windows are computed together: one load multiple of their weights for one input feeds 16
 * multiply-accumulates. Compilers do not form load multiples of floats from C, hence the assembly. */
#ifndef BT_FPU_H
#define BT_FPU_H

#include "windows.h"

#define BT_SINGLES                                                                                                     \
    "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "s16",       \
        "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31"

#define BT_MAC(sum, w, x) "vfma.f32 s" #sum ", s" #w ", s" #x "\n\t"
/* s0-s7 += s16-s23 times one input; the same of s24-s31; and s8-s15 += s24-s31 times one input */
#define BT_MACS_16(x)                                                                                                  \
    BT_MAC(0, 16, x) BT_MAC(1, 17, x) BT_MAC(2, 18, x) BT_MAC(3, 19, x)                                                \
    BT_MAC(4, 20, x) BT_MAC(5, 21, x) BT_MAC(6, 22, x) BT_MAC(7, 23, x)
#define BT_MACS_24(x)                                                                                                  \
    BT_MAC(0, 24, x) BT_MAC(1, 25, x) BT_MAC(2, 26, x) BT_MAC(3, 27, x)                                                \
    BT_MAC(4, 28, x) BT_MAC(5, 29, x) BT_MAC(6, 30, x) BT_MAC(7, 31, x)
#define BT_MACS_24_HIGH(x)                                                                                             \
    BT_MAC(8, 24, x) BT_MAC(9, 25, x) BT_MAC(10, 26, x) BT_MAC(11, 27, x)                                              \
    BT_MAC(12, 28, x) BT_MAC(13, 29, x) BT_MAC(14, 30, x) BT_MAC(15, 31, x)

/* The weights of eight outputs for one input, or for two. half_fpu.h has other ones. */
#define BT_FLOATS_16 "vldmia %[w]!, {s16-s23}\n\t"
#define BT_FLOATS_24 "vldmia %[w]!, {s24-s31}\n\t"
#define BT_FLOATS_16_24 "vldmia %[w]!, {s16-s31}\n\t"

/* y[0..8 * eights) of one window. `w`: [eights][weights][8], from the first weight used; eight weights are 1 << `log`
 * bytes. Eight inputs in s8-s15, the weights of two of them in s16-s31: 71 instructions for 64 products. This and the
 * others use variables of the functions that contain them. */
#define BT_FPU_ONE_WINDOW(two, one, log)                                                                               \
    __asm__ volatile("1:\n\t"                                                                                          \
                     "vldmia %[bias]!, {s0-s7}\n\t"                                                                    \
                     "mov %[at], %[x]\n\t"                                                                             \
                     "ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n\t"                                                                 \
                     "subs %[n], %[n], #8\n\t"                                                                         \
                     "blo 4f\n"                                                                                        \
                     "3:\n\t"                                                                                          \
                     "vldmia %[at]!, {s8-s15}\n\t"                                                                     \
                     two BT_MACS_16(8) BT_MACS_24(9) two BT_MACS_16(10) BT_MACS_24(11)                                 \
                     two BT_MACS_16(12) BT_MACS_24(13) two BT_MACS_16(14) BT_MACS_24(15)                               \
                     "subs %[n], %[n], #8\n\t"                                                                         \
                     "bhs 3b\n"                                                                                        \
                     "4:\n\t"                                                                                          \
                     "adds %[n], %[n], #8\n\t"                                                                         \
                     "beq 6f\n"                                                                                        \
                     "5:\n\t"                                                                                          \
                     "vldmia %[at]!, {s8}\n\t"                                                                         \
                     one                                                                                               \
                     BT_MACS_16(8)                                                                                     \
                     "subs %[n], %[n], #1\n\t"                                                                         \
                     "bne 5b\n"                                                                                        \
                     "6:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[at], %[at], %[n], lsl #2\n\t"                                                              \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b\n\t"                                                                                      \
                     "vstmia %[y]!, {s0-s7}\n\t"                                                                       \
                     "ldr %[n], [%[s], %[w_next]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[eights], %[eights], #1\n\t"                                                               \
                     "bne 1b"                                                                                          \
                     : [at] "=&r"(at), [r] "=&r"(rows), [n] "=&r"(n), [w] "+&r"(w), [bias] "+&r"(bias), [y] "+&r"(y),  \
                       [eights] "+&r"(eights)                                                                          \
                     : [s] "r"(s), [x] "r"(x), BT_FIELDS                                                               \
                     : BT_SINGLES, "cc", "memory")
BT_INLINE void bt_fpu_one_window(const bt_windows *s, const float *x, const float *w, const float *bias, float *y,
                                 int32_t eights)
{
    const float *at;
    int32_t rows, n;
    BT_FPU_ONE_WINDOW(BT_FLOATS_16_24, BT_FLOATS_16, "5");
}

/* The same for two windows, whose inputs begin at `x` and `z`; the second's outputs follow the first's.
 * Four inputs of each in s16-s19 and s20-s23, the weights of one in s24-s31: 72 instructions for 64 products,
 * and half the weights to load. */
#define BT_FPU_TWO_WINDOWS(one, log)                                                                                   \
    __asm__ volatile("1:\n\t"                                                                                          \
                     "vldmia %[bias], {s0-s7}\n\t"                                                                     \
                     "vldmia %[bias]!, {s8-s15}\n\t"                                                                   \
                     "mov %[at], %[x]\n\t"                                                                             \
                     "mov %[at_z], %[z]\n\t"                                                                           \
                     "ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n\t"                                                                 \
                     "subs %[n], %[n], #4\n\t"                                                                         \
                     "blo 4f\n"                                                                                        \
                     "3:\n\t"                                                                                          \
                     "vldmia %[at]!, {s16-s19}\n\t"                                                                    \
                     "vldmia %[at_z]!, {s20-s23}\n\t"                                                                  \
                     one BT_MACS_24(16) BT_MACS_24_HIGH(20) one BT_MACS_24(17) BT_MACS_24_HIGH(21)                     \
                     one BT_MACS_24(18) BT_MACS_24_HIGH(22) one BT_MACS_24(19) BT_MACS_24_HIGH(23)                     \
                     "subs %[n], %[n], #4\n\t"                                                                         \
                     "bhs 3b\n"                                                                                        \
                     "4:\n\t"                                                                                          \
                     "adds %[n], %[n], #4\n\t"                                                                         \
                     "beq 6f\n"                                                                                        \
                     "5:\n\t"                                                                                          \
                     "vldmia %[at]!, {s16}\n\t"                                                                        \
                     "vldmia %[at_z]!, {s20}\n\t"                                                                      \
                     one BT_MACS_24(16) BT_MACS_24_HIGH(20)                                                            \
                     "subs %[n], %[n], #1\n\t"                                                                         \
                     "bne 5b\n"                                                                                        \
                     "6:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[at], %[at], %[n], lsl #2\n\t"                                                              \
                     "add %[at_z], %[at_z], %[n], lsl #2\n\t"                                                          \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b\n\t"                                                                                      \
                     "vstmia %[y]!, {s0-s7}\n\t"                                                                       \
                     "vstmia %[y_z]!, {s8-s15}\n\t"                                                                    \
                     "ldr %[n], [%[s], %[w_next]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[eights], %[eights], #1\n\t"                                                               \
                     "bne 1b"                                                                                          \
                     : [at] "=&r"(at), [at_z] "=&r"(at_z), [r] "=&r"(rows), [n] "=&r"(n), [w] "+&r"(w),                \
                       [bias] "+&r"(bias), [y] "+&r"(y), [y_z] "+&r"(y_z), [eights] "+&r"(eights)                      \
                     : [s] "r"(s), [x] "r"(x), [z] "r"(z), BT_FIELDS                                                   \
                     : BT_SINGLES, "cc", "memory")
BT_INLINE void bt_fpu_two_windows(const bt_windows *s, const float *x, const float *z, const float *w,
                                  const float *bias, float *y, int32_t eights)
{
    const float *at, *at_z;
    float *y_z = y + s->out;
    int32_t rows, n;
    BT_FPU_TWO_WINDOWS(BT_FLOATS_24, "5");
}

/* sum + the products of x[i] and w[i] over i < n, in four partial sums */
BT_INLINE float bt_fpu_dot(float sum, const float *x, const float *w, int32_t n)
{
    float b = 0.0f, c = 0.0f, d = 0.0f;
    int32_t fours = n >> 2;
    if (fours > 0)
        __asm__ volatile("1:\n\t"
                         "vldmia %[x]!, {s8-s11}\n\t"
                         "vldmia %[w]!, {s12-s15}\n\t"
                         "vfma.f32 %[a], s8, s12\n\t"
                         "vfma.f32 %[b], s9, s13\n\t"
                         "vfma.f32 %[c], s10, s14\n\t"
                         "vfma.f32 %[d], s11, s15\n\t"
                         "subs %[n], %[n], #1\n\t"
                         "bne 1b"
                         : [a] "+&t"(sum), [b] "+&t"(b), [c] "+&t"(c), [d] "+&t"(d), [x] "+&r"(x), [w] "+&r"(w),
                           [n] "+&r"(fours)
                         :
                         : "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", "cc", "memory");
    for (int32_t i = 0; i < (n & 3); i++)
        sum += x[i] * w[i];
    return (sum + b) + (c + d);
}

/* y[0..rest) of one window: outputs that fill no eight. `w`: [rest][weights], from the first weight used. */
BT_SHARED void bt_fpu_rest(const bt_windows *s, const float *x, const float *w, const float *bias, float *y,
                           int32_t rest)
{
    for (int32_t o = 0; o < rest; o++, w += s->weights) {
        const float *at = x, *row = w;
        float sum = bias[o];
        for (int32_t r = 0; r < s->rows; r++) {
            sum = bt_fpu_dot(sum, at, row, s->inputs);
            at += s->inputs + s->x_step;
            row += s->inputs + s->w_step;
        }
        y[o] = sum;
    }
}

/* A bt_sums with weights of type T, and the functions that go with them.
 * weight: [out / 8][weights][8], then [out % 8][weights] */
#define BT_FPU_DENSE(symbol, T, one_window, two_windows, rest_of)                                                      \
    BT_SHARED void symbol(const bt_windows *s, const float *x, const float *weight, const float *bias, float *y,       \
                          int32_t count)                                                                               \
    {                                                                                                                  \
        int32_t eights = s->out >> 3;                                                                                  \
        int32_t rest = s->out & 7;                                                                                     \
        int32_t full = s->out - rest;                                                                                  \
        const T *w = (const T *)(const void *)weight + 8 * s->skipped;                                                 \
        const T *w_rest = (const T *)(const void *)weight + full * s->weights + s->skipped;                            \
        for (int32_t i = 0; i < count;) {                                                                              \
            int32_t together = count - i > 1 ? 2 : 1;                                                                  \
            if (eights && together == 2)                                                                               \
                two_windows(s, x, x + s->x_next, w, bias, y, eights);                                                  \
            else if (eights)                                                                                           \
                one_window(s, x, w, bias, y, eights);                                                                  \
            for (int32_t k = 0; k < together; k++, i++, x += s->x_next, y += s->out)                                   \
                if (rest)                                                                                              \
                    rest_of(s, x, w_rest, bias + full, y + full, rest);                                                \
        }                                                                                                              \
    }
BT_FPU_DENSE(bt_fpu_dense, float, bt_fpu_one_window, bt_fpu_two_windows, bt_fpu_rest)

#define BT_MACS_8(w0, w1, w2, w3, w4, w5, w6, w7)                                                                      \
    BT_MAC(0, w0, 8) BT_MAC(1, w1, 9) BT_MAC(2, w2, 10) BT_MAC(3, w3, 11)                                              \
    BT_MAC(4, w4, 12) BT_MAC(5, w5, 13) BT_MAC(6, w6, 14) BT_MAC(7, w7, 15)
#define BT_TAP_16 BT_MACS_8(16, 17, 18, 19, 20, 21, 22, 23)
#define BT_TAP_24 BT_MACS_8(24, 25, 26, 27, 28, 29, 30, 31)

/* y[0..8 * eights) of one window of a depthwise convolution: eight channels of an input in s8-s15 meet the weights of
 * eight outputs: 13 instructions for 8 products. */
#define BT_FPU_DEPTHWISE(one, log)                                                                                     \
    __asm__ volatile("1:\n\t"                                                                                          \
                     "vldmia %[bias]!, {s0-s7}\n\t"                                                                    \
                     "mov %[at], %[x]\n\t"                                                                             \
                     "ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n"                                                                   \
                     "3:\n\t"                                                                                          \
                     one                                                                                               \
                     "vldmia %[at], {s8-s15}\n\t"                                                                      \
                     "add %[at], %[at], %[pixel]\n\t"                                                                  \
                     BT_TAP_16                                                                                         \
                     "subs %[n], %[n], #1\n\t"                                                                         \
                     "bne 3b\n\t"                                                                                      \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[at], %[at], %[n], lsl #2\n\t"                                                              \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b\n\t"                                                                                      \
                     "vstmia %[y]!, {s0-s7}\n\t"                                                                       \
                     "add %[x], %[x], #32\n\t"                                                                         \
                     "ldr %[n], [%[s], %[w_next]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[eights], %[eights], #1\n\t"                                                               \
                     "bne 1b"                                                                                          \
                     : [at] "=&r"(at), [r] "=&r"(rows), [n] "=&r"(n), [x] "+&r"(x), [w] "+&r"(w), [bias] "+&r"(bias),  \
                       [y] "+&r"(y), [eights] "+&r"(eights)                                                            \
                     : [s] "r"(s), [pixel] "r"(4 * s->out), BT_FIELDS                                                  \
                     : BT_SINGLES, "cc", "memory")
BT_INLINE void bt_fpu_depthwise_any(const bt_windows *s, const float *x, const float *w, const float *bias,
                                    float *y, int32_t eights)
{
    const float *at;
    int32_t rows, n;
    BT_FPU_DEPTHWISE(BT_FLOATS_16, "5");
}

/* The same where the window is three wide, and so is the kernel: 34 instructions for 24 products. */
BT_INLINE void bt_fpu_depthwise_three(const bt_windows *s, const float *x, const float *w, const float *bias,
                                      float *y, int32_t eights)
{
    const float *at;
    int32_t rows;
    __asm__ volatile("1:\n\t"
                     "vldmia %[bias]!, {s0-s7}\n\t"
                     "mov %[at], %[x]\n\t"
                     "ldr %[r], [%[s], %[rows]]\n"
                     "2:\n\t"
                     "vldmia %[w]!, {s16-s31}\n\t"
                     "vldmia %[at], {s8-s15}\n\t"
                     "add %[at], %[at], %[pixel]\n\t" /**/
                     BT_TAP_16                        /**/
                     "vldmia %[at], {s8-s15}\n\t"
                     "add %[at], %[at], %[pixel]\n\t" /**/
                     BT_TAP_24                        /**/
                     "vldmia %[w]!, {s16-s23}\n\t"
                     "vldmia %[at], {s8-s15}\n\t"
                     "add %[at], %[at], %[row]\n\t" /**/
                     BT_TAP_16                      /**/
                     "subs %[r], %[r], #1\n\t"
                     "bne 2b\n\t"
                     "vstmia %[y]!, {s0-s7}\n\t"
                     "add %[x], %[x], #32\n\t"
                     "add %[w], %[w], %[next]\n\t"
                     "subs %[eights], %[eights], #1\n\t"
                     "bne 1b"
                     : [at] "=&r"(at), [r] "=&r"(rows), [x] "+&r"(x), [w] "+&r"(w), [bias] "+&r"(bias), [y] "+&r"(y),
                       [eights] "+&r"(eights)
                     : [s] "r"(s), [pixel] "r"(4 * s->out), [row] "r"(4 * (s->out + s->x_step)),
                       [next] "r"(32 * s->w_next), BT_FIELD(rows)
                     : BT_SINGLES, "cc", "memory");
}

/* y[count][out]: windows of a depthwise convolution; `inputs` counts the pixels in a row of the window.
 * weight: [out / 8][weights][8], then [out % 8][weights] */
BT_SHARED void bt_fpu_depthwise(const bt_windows *s, const float *x, const float *weight, const float *bias,
                                float *y, int32_t count)
{
    int32_t full = s->out & ~7;
    for (int32_t i = 0; i < count; i++, x += s->x_next, y += s->out) {
        if (full && s->inputs == 3 && s->w_step == 0)
            bt_fpu_depthwise_three(s, x, weight + 8 * s->skipped, bias, y, full / 8);
        else if (full)
            bt_fpu_depthwise_any(s, x, weight + 8 * s->skipped, bias, y, full / 8);
        for (int32_t o = full; o < s->out; o++) {
            const float *at = x + o, *w = weight + o * s->weights + s->skipped;
            float sum = bias[o];
            for (int32_t r = 0; r < s->rows; r++, at += s->x_step, w += s->w_step)
                for (int32_t k = 0; k < s->inputs; k++, at += s->out)
                    sum += *at * *w++;
            y[o] = sum;
        }
    }
}

/* y[i] = 0 where y[i] is below, for i < n: two instructions per number on its bits. A negative number has the sign bit
 * set, and so has a negative NaN, which must stay; but a saturating addition of 0x7fffff leaves the sign bit of just
 * -inf and the negative numbers set. */
BT_SHARED void bt_fpu_relu(float *y, int32_t n)
{
    int32_t left = n - 8;
    int32_t sign;
#define BT_RELU(v) "qadd %[sign], " v ", %[nan]\n\tbic " v ", " v ", %[sign], asr #31\n\t"
    if (left >= 0)
        __asm__ volatile("1:\n\t"
                         "ldmia %[y], {r3-r6, r8-r10, r12}\n\t" /**/
                         BT_RELU("r3") BT_RELU("r4") BT_RELU("r5") BT_RELU("r6") /**/
                         BT_RELU("r8") BT_RELU("r9") BT_RELU("r10") BT_RELU("r12") /**/
                         "stmia %[y]!, {r3-r6, r8-r10, r12}\n\t"
                         "subs %[left], %[left], #8\n\t"
                         "bhs 1b"
                         : [y] "+&r"(y), [left] "+&r"(left), [sign] "=&r"(sign)
                         : [nan] "r"(0x7fffff)
                         : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r12", "cc", "memory");
#undef BT_RELU
    for (int32_t i = 0; i < (n & 7); i++)
        y[i] = bt_clamp_f32(y[i], 0.0f, BT_INF);
}

BT_SHARED void bt_fpu_clamp(float *y, int32_t n, float lo, float hi)
{
    for (int32_t i = 0; i < n; i++)
        y[i] = bt_clamp_f32(y[i], lo, hi);
}

BT_INLINE void bt_fpu_limit(float *y, int32_t n, float lo, float hi)
{
    if (lo == 0.0f && hi == BT_INF)
        bt_fpu_relu(y, n);
    else if (lo != -BT_INF || hi != BT_INF)
        bt_fpu_clamp(y, n, lo, hi);
}

/* y[i] = the larger of a[i] and b[i] for i < n, NaN if either is. Of numbers that are `positive`, or NaN, the larger
 * has the larger bits. */
BT_SHARED void bt_fpu_larger(float *y, const float *a, const float *b, int32_t n, bool positive)
{
    if (positive && n >= 4) {
        int32_t left = n - 4;
#define BT_LARGER(v, w) "cmp " v ", " w "\n\tit lo\n\tmovlo " v ", " w "\n\t"
        __asm__ volatile("1:\n\t"
                         "ldmia %[a]!, {r3-r6}\n\t"
                         "ldmia %[b]!, {r8-r10, r12}\n\t" /**/
                         BT_LARGER("r3", "r8") BT_LARGER("r4", "r9") BT_LARGER("r5", "r10") BT_LARGER("r6", "r12") /**/
                         "stmia %[y]!, {r3-r6}\n\t"
                         "subs %[left], %[left], #4\n\t"
                         "bhs 1b"
                         : [y] "+&r"(y), [a] "+&r"(a), [b] "+&r"(b), [left] "+&r"(left)
                         :
                         : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r12", "cc", "memory");
#undef BT_LARGER
        n &= 3;
    }
    for (int32_t i = 0; i < n; i++)
        y[i] = bt_max_f32(a[i], b[i]);
}

#endif
