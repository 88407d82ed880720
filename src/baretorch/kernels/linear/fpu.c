/* linear for Arm cores with a single-precision FPU (Cortex-M4F, M7, M33, M55).
 *
 * Eight outputs at a time: their weights for one input lie together, so one load multiple feeds eight
 * multiply-accumulates, and four inputs come with another: 39 instructions for 32 products. Compilers do not form
 * these load multiples from C, hence the assembly. Rows left over are plain dot products. */
#include "linear.h"

/* acc[0..7] += sum over i of x[i] * w[i][0..7] */
BT_INLINE void bt_linear_eight(float acc[8], const float *x, const float *w, int32_t n)
{
    float a0 = acc[0], a1 = acc[1], a2 = acc[2], a3 = acc[3], a4 = acc[4], a5 = acc[5], a6 = acc[6], a7 = acc[7];
    int32_t fours = n >> 2;
    int32_t ones = n & 3;

#define BT_EIGHT_PRODUCTS(x)                                                                                         \
    "vldmia %[w]!, {s24-s31}\n\t"                                                                                      \
    "vfma.f32 %[a0], s24, " x "\n\t"                                                                                   \
    "vfma.f32 %[a1], s25, " x "\n\t"                                                                                   \
    "vfma.f32 %[a2], s26, " x "\n\t"                                                                                   \
    "vfma.f32 %[a3], s27, " x "\n\t"                                                                                   \
    "vfma.f32 %[a4], s28, " x "\n\t"                                                                                   \
    "vfma.f32 %[a5], s29, " x "\n\t"                                                                                   \
    "vfma.f32 %[a6], s30, " x "\n\t"                                                                                   \
    "vfma.f32 %[a7], s31, " x "\n\t"

#define BT_EIGHT_SUMS                                                                                                  \
    [a0] "+t"(a0), [a1] "+t"(a1), [a2] "+t"(a2), [a3] "+t"(a3), [a4] "+t"(a4), [a5] "+t"(a5), [a6] "+t"(a6),            \
        [a7] "+t"(a7), [x] "+r"(x), [w] "+r"(w)
#define BT_EIGHT_CLOBBERS "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", "s30", "s31", "cc", "memory"

    if (fours > 0)
        __asm__ volatile("1:\n\t"
                         "vldmia %[x]!, {s20-s23}\n\t" /**/
                         BT_EIGHT_PRODUCTS("s20") BT_EIGHT_PRODUCTS("s21") BT_EIGHT_PRODUCTS("s22")
                             BT_EIGHT_PRODUCTS("s23") /**/
                         "subs %[n], %[n], #1\n\t"
                         "bne 1b"
                         : BT_EIGHT_SUMS, [n] "+r"(fours)
                         :
                         : BT_EIGHT_CLOBBERS);
    if (ones > 0)
        __asm__ volatile("1:\n\t"
                         "vldmia %[x]!, {s20}\n\t" /**/
                         BT_EIGHT_PRODUCTS("s20") /**/
                         "subs %[n], %[n], #1\n\t"
                         "bne 1b"
                         : BT_EIGHT_SUMS, [n] "+r"(ones)
                         :
                         : BT_EIGHT_CLOBBERS);

    acc[0] = a0, acc[1] = a1, acc[2] = a2, acc[3] = a3, acc[4] = a4, acc[5] = a5, acc[6] = a6, acc[7] = a7;
}

/* acc + sum over i of x[i] * w[i], in four partial sums */
BT_INLINE float bt_linear_one(float acc, const float *x, const float *w, int32_t n)
{
    float a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
    int32_t fours = n >> 2;

    if (fours > 0)
        __asm__ volatile("1:\n\t"
                         "vldmia %[x]!, {s20-s23}\n\t"
                         "vldmia %[w]!, {s24-s27}\n\t"
                         "vfma.f32 %[a0], s20, s24\n\t"
                         "vfma.f32 %[a1], s21, s25\n\t"
                         "vfma.f32 %[a2], s22, s26\n\t"
                         "vfma.f32 %[a3], s23, s27\n\t"
                         "subs %[n], %[n], #1\n\t"
                         "bne 1b"
                         : [a0] "+t"(acc), [a1] "+t"(a1), [a2] "+t"(a2), [a3] "+t"(a3), [x] "+r"(x), [w] "+r"(w),
                           [n] "+r"(fours)
                         :
                         : "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "cc", "memory");
    for (int32_t i = 0; i < (n & 3); i++)
        acc += x[i] * w[i];
    return (acc + a1) + (a2 + a3);
}

BT_KERNEL void bt_linear_f32_fpu(const bt_linear_f32 *p, const float *x, const float *weight, const float *bias,
                                 float *y)
{
    for (int32_t b = 0; b < p->batch; b++) {
        const float *w = weight;
        int32_t o = 0;
        for (; o + 8 <= p->out; o += 8) {
            float acc[8];
            BT_UNROLL_8
            for (int32_t k = 0; k < 8; k++)
                acc[k] = bias[o + k];
            bt_linear_eight(acc, x, w, p->in);
            BT_UNROLL_8
            for (int32_t k = 0; k < 8; k++)
                y[o + k] = bt_clamp_f32(acc[k], p->lo, p->hi);
            w += 8 * p->in;
        }
        for (; o < p->out; o++) {
            y[o] = bt_clamp_f32(bt_linear_one(bias[o], x, w, p->in), p->lo, p->hi);
            w += p->in;
        }
        x += p->in;
        y += p->out;
    }
}
