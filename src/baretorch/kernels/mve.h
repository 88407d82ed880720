/* Sums of products for Arm cores with Helium, the M-profile vector extension (Cortex-M55, M85): see windows.h.
 *
 * Eight outputs are two vectors of four. Two windows together use each vector of weights twice. The inner loops are
 * assembly, since compilers spend half as many instructions again on addresses. */
#ifndef BT_MVE_H
#define BT_MVE_H

#include <arm_mve.h>

#include "windows.h"

/* Eight sums; the two halves are vectors. */
typedef struct {
    float32x4_t low, high;
} bt_mve_eight;

BT_INLINE bt_mve_eight bt_mve_load(const float *x)
{
    return (bt_mve_eight){vld1q_f32(x), vld1q_f32(x + 4)};
}

BT_INLINE void bt_mve_store(float *y, bt_mve_eight v)
{
    vst1q_f32(y, v.low);
    vst1q_f32(y + 4, v.high);
}

/* The weights of eight outputs for one input. half_mve.h has other ones; eight of them are 1 << `log` bytes. */
#define BT_MVE_WEIGHTS "vldrw.u32 %q[p], [%[w]], #16\n\tvldrw.u32 %q[q], [%[w]], #16\n\t"
#define BT_MVE_LEFT(x) "vfma.f32 %q[a], %q[p], " x "\n\tvfma.f32 %q[b], %q[q], " x "\n\t"
#define BT_MVE_RIGHT(x) "vfma.f32 %q[c], %q[p], " x "\n\tvfma.f32 %q[d], %q[q], " x "\n\t"

/* Adds the products of one window, from `x` on, with the weights of eight outputs; gives where the weights end.
 * 10 instructions for 16 products. This macro and the others use variables of the functions that contain them. */
#define BT_MVE_ONE_WINDOW(weights, log)                                                                                \
    __asm__ volatile("ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n\t"                                                                 \
                     "lsr lr, %[n], #1\n\t"                                                                            \
                     "wls lr, lr, 4f\n"                                                                                \
                     "3:\n\t"                                                                                          \
                     "ldrd %[i], %[j], [%[x]], #8\n\t"                                                                 \
                     weights BT_MVE_LEFT("%[i]") weights BT_MVE_LEFT("%[j]")                                           \
                     "le lr, 3b\n"                                                                                     \
                     "4:\n\t"                                                                                          \
                     "lsls %[n], %[n], #31\n\t"                                                                        \
                     "beq 6f\n\t"                                                                                      \
                     "ldr %[i], [%[x]], #4\n\t"                                                                        \
                     weights BT_MVE_LEFT("%[i]") "\n"                                                                  \
                     "6:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[x], %[x], %[n], lsl #2\n\t"                                                                \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b"                                                                                          \
                     : [a] "+&w"(sums->low), [b] "+&w"(sums->high), [p] "=&w"(p), [q] "=&w"(q), [x] "+&r"(x),          \
                       [w] "+&r"(w), [r] "=&r"(rows), [n] "=&r"(n), [i] "=&r"(i), [j] "=&r"(j)                         \
                     : [s] "r"(s), BT_FIELDS                                                                           \
                     : "lr", "cc", "memory")
BT_INLINE const float *bt_mve_one_window(const bt_windows *s, bt_mve_eight *sums, const float *x, const float *w)
{
    float32x4_t p, q;
    int32_t rows, n, i, j;
    BT_MVE_ONE_WINDOW(BT_MVE_WEIGHTS, "5");
    return w;
}

/* The same for two windows, from `x` and `z` on: 15 instructions for 32 products. */
#define BT_MVE_TWO_WINDOWS(weights, log)                                                                               \
    __asm__ volatile("ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n\t"                                                                 \
                     "lsr lr, %[n], #1\n\t"                                                                            \
                     "wls lr, lr, 4f\n"                                                                                \
                     "3:\n\t"                                                                                          \
                     "ldrd %[i], %[j], [%[x]], #8\n\t"                                                                 \
                     "ldrd %[k], %[l], [%[z]], #8\n\t"                                                                 \
                     weights BT_MVE_LEFT("%[i]") BT_MVE_RIGHT("%[k]")                                                  \
                     weights BT_MVE_LEFT("%[j]") BT_MVE_RIGHT("%[l]")                                                  \
                     "le lr, 3b\n"                                                                                     \
                     "4:\n\t"                                                                                          \
                     "lsls %[n], %[n], #31\n\t"                                                                        \
                     "beq 6f\n\t"                                                                                      \
                     "ldr %[i], [%[x]], #4\n\t"                                                                        \
                     "ldr %[k], [%[z]], #4\n\t"                                                                        \
                     weights BT_MVE_LEFT("%[i]") BT_MVE_RIGHT("%[k]") "\n"                                             \
                     "6:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[x], %[x], %[n], lsl #2\n\t"                                                                \
                     "add %[z], %[z], %[n], lsl #2\n\t"                                                                \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b"                                                                                          \
                     : [a] "+&w"(sums->low), [b] "+&w"(sums->high), [c] "+&w"(sums_z->low), [d] "+&w"(sums_z->high),   \
                       [p] "=&w"(p), [q] "=&w"(q), [x] "+&r"(x), [z] "+&r"(z), [w] "+&r"(w), [r] "=&r"(rows),          \
                       [n] "=&r"(n), [i] "=&r"(i), [j] "=&r"(j), [k] "=&r"(k), [l] "=&r"(l)                            \
                     : [s] "r"(s), BT_FIELDS                                                                           \
                     : "lr", "cc", "memory")
BT_INLINE const float *bt_mve_two_windows(const bt_windows *s, bt_mve_eight *sums, bt_mve_eight *sums_z, const float *x,
                                          const float *z, const float *w)
{
    float32x4_t p, q;
    int32_t rows, n, i, j, k, l;
    BT_MVE_TWO_WINDOWS(BT_MVE_WEIGHTS, "5");
    return w;
}

/* One window of a depthwise convolution, eight channels: 8 instructions for 8 products. */
#define BT_MVE_DEPTHWISE(weights, log)                                                                                 \
    __asm__ volatile("ldr %[r], [%[s], %[rows]]\n"                                                                     \
                     "2:\n\t"                                                                                          \
                     "ldr %[n], [%[s], %[inputs]]\n\t"                                                                 \
                     "dls lr, %[n]\n"                                                                                  \
                     "3:\n\t"                                                                                          \
                     "vldrw.u32 %q[u], [%[x]]\n\t"                                                                     \
                     "vldrw.u32 %q[v], [%[x], #16]\n\t"                                                                \
                     "add %[x], %[x], %[pixel]\n\t"                                                                    \
                     weights                                                                                           \
                     "vfma.f32 %q[a], %q[p], %q[u]\n\t"                                                                \
                     "vfma.f32 %q[b], %q[q], %q[v]\n\t"                                                                \
                     "le lr, 3b\n\t"                                                                                   \
                     "ldr %[n], [%[s], %[x_step]]\n\t"                                                                 \
                     "add %[x], %[x], %[n], lsl #2\n\t"                                                                \
                     "ldr %[n], [%[s], %[w_step]]\n\t"                                                                 \
                     "add %[w], %[w], %[n], lsl #" log "\n\t"                                                          \
                     "subs %[r], %[r], #1\n\t"                                                                         \
                     "bne 2b"                                                                                          \
                     : [a] "+&w"(sums->low), [b] "+&w"(sums->high), [u] "=&w"(u), [v] "=&w"(v), [p] "=&w"(p),          \
                       [q] "=&w"(q), [x] "+&r"(x), [w] "+&r"(w), [r] "=&r"(rows), [n] "=&r"(n)                         \
                     : [s] "r"(s), [pixel] "r"(4 * s->out), BT_FIELDS                                                  \
                     : "lr", "cc", "memory")
BT_INLINE const float *bt_mve_depthwise_window(const bt_windows *s, bt_mve_eight *sums, const float *x, const float *w)
{
    float32x4_t u, v, p, q;
    int32_t rows, n;
    BT_MVE_DEPTHWISE(BT_MVE_WEIGHTS, "5");
    return w;
}

/* y[0..rest) of one window: outputs that fill no eight. `w`: [rest][weights], from the first weight used. */
BT_SHARED void bt_mve_rest(const bt_windows *s, const float *x, const float *w, const float *bias, float *y,
                           int32_t rest)
{
    for (int32_t o = 0; o < rest; o++, w += s->weights) {
        const float *at = x, *row = w;
        float32x4_t sums = vdupq_n_f32(0.0f);
        for (int32_t r = 0; r < s->rows; r++, at += s->inputs + s->x_step, row += s->inputs + s->w_step) {
            for (int32_t i = 0; i < s->inputs; i += 4) {
                mve_pred16_t inside = vctp32q((uint32_t)(s->inputs - i));
                sums = vfmaq_m_f32(sums, vldrwq_z_f32(at + i, inside), vldrwq_z_f32(row + i, inside), inside);
            }
        }
        y[o] = bias[o] + ((vgetq_lane_f32(sums, 0) + vgetq_lane_f32(sums, 1)) +
                          (vgetq_lane_f32(sums, 2) + vgetq_lane_f32(sums, 3)));
    }
}

/* A bt_sums with weights of type T, and the functions that go with them. */
#define BT_MVE_DENSE(symbol, T, one_window, two_windows, rest)                                                         \
    BT_SHARED void symbol(const bt_windows *s, const float *x, const float *weight, const float *bias, float *y,       \
                          int32_t count)                                                                               \
    {                                                                                                                  \
        int32_t full = s->out & ~7;                                                                                    \
        const T *const all = (const T *)(const void *)weight;                                                          \
        for (int32_t i = 0; i < count;) {                                                                              \
            int32_t together = count - i > 1 ? 2 : 1;                                                                  \
            const T *w = all + 8 * s->skipped;                                                                         \
            for (int32_t o = 0; o < full; o += 8, w += 8 * s->w_next) {                                                \
                bt_mve_eight sums = bt_mve_load(bias + o), sums_z = sums;                                              \
                if (together == 2) {                                                                                   \
                    w = two_windows(s, &sums, &sums_z, x, x + s->x_next, w);                                           \
                    bt_mve_store(y + s->out + o, sums_z);                                                              \
                } else                                                                                                 \
                    w = one_window(s, &sums, x, w);                                                                    \
                bt_mve_store(y + o, sums);                                                                             \
            }                                                                                                          \
            for (int32_t k = 0; k < together; k++, i++, x += s->x_next, y += s->out)                                   \
                if (full < s->out)                                                                                     \
                    rest(s, x, all + full * s->weights + s->skipped, bias + full, y + full, s->out - full);            \
        }                                                                                                              \
    }
BT_MVE_DENSE(bt_mve_dense, float, bt_mve_one_window, bt_mve_two_windows, bt_mve_rest)

BT_SHARED void bt_mve_depthwise(const bt_windows *s, const float *x, const float *weight, const float *bias, float *y,
                                int32_t count)
{
    int32_t full = s->out & ~7;
    for (int32_t i = 0; i < count; i++, x += s->x_next, y += s->out) {
        const float *w = weight + 8 * s->skipped;
        for (int32_t o = 0; o < full; o += 8, w += 8 * s->w_next) {
            bt_mve_eight sums = bt_mve_load(bias + o);
            w = bt_mve_depthwise_window(s, &sums, x + o, w);
            bt_mve_store(y + o, sums);
        }
        for (int32_t o = full; o < s->out; o++) {
            const float *at = x + o, *one = weight + o * s->weights + s->skipped;
            float sum = bias[o];
            for (int32_t r = 0; r < s->rows; r++, at += s->x_step, one += s->w_step)
                for (int32_t k = 0; k < s->inputs; k++, at += s->out)
                    sum += *at * *one++;
            y[o] = sum;
        }
    }
}

/* "Greater" is false for NaN, so NaN stays; "less" would be true. */
BT_SHARED void bt_mve_limit(float *y, int32_t n, float lo, float hi)
{
    float32x4_t v;
    if (lo == -BT_INF && hi == BT_INF)
        return;
#define BT_LIMIT_FOURS(steps)                                                                                          \
    __asm__ volatile("wls lr, %[fours], 2f\n"                                                                          \
                     "1:\n\t"                                                                                          \
                     "vldrw.u32 %q[v], [%[y]]\n\t" steps "vstrw.32 %q[v], [%[y]], #16\n\t"                            \
                     "le lr, 1b\n"                                                                                     \
                     "2:"                                                                                              \
                     : [y] "+&r"(y), [v] "=&w"(v)                                                                      \
                     : [fours] "r"(n / 4), [lo] "r"(lo), [hi] "r"(hi), [least] "w"(vdupq_n_f32(lo))                    \
                     : "lr", "cc", "memory")
#define BT_LIMIT_LOW "vpt.f32 gt, %q[least], %q[v]\n\tvdupt.32 %q[v], %[lo]\n\t"
#define BT_LIMIT_HIGH "vpt.f32 gt, %q[v], %[hi]\n\tvdupt.32 %q[v], %[hi]\n\t"
    if (hi == BT_INF)
        BT_LIMIT_FOURS(BT_LIMIT_LOW);
    else
        BT_LIMIT_FOURS(BT_LIMIT_LOW BT_LIMIT_HIGH);
#undef BT_LIMIT_FOURS
#undef BT_LIMIT_LOW
#undef BT_LIMIT_HIGH
    for (int32_t i = 0; i < n % 4; i++)
        y[i] = bt_clamp_f32(y[i], lo, hi);
}

BT_SHARED void bt_mve_larger(float *y, const float *a, const float *b, int32_t n, bool positive)
{
    (void)positive;
    for (int32_t i = 0; i < n; i += 4) {
        mve_pred16_t inside = vctp32q((uint32_t)(n - i));
        float32x4_t v = vldrwq_z_f32(a + i, inside);
        float32x4_t w = vldrwq_z_f32(b + i, inside);
        v = vpselq_f32(w, v, vcmpgtq_f32(w, v));
        v = vpselq_f32(w, v, vcmpneq_f32(w, w));
        vstrwq_p_f32(y + i, v, inside);
    }
}

#endif
