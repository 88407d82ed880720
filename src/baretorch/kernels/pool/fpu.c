/* Average pooling for Arm cores with a single-precision FPU, where every window is inside the image. */
#include "pool.h"

#include "../fpu.h"

/* y[0..8 * eights): eight channels at a time, 12 instructions for 8 inputs */
BT_INLINE void bt_fpu_average(const bt_windows *s, const float *x, float *y, int32_t eights, float divisor)
{
    const float *at;
    int32_t rows, n;
#define BT_ADD(sum, x) "vadd.f32 s" #sum ", s" #sum ", s" #x "\n\t"
#define BT_DIVIDE(sum) "vdiv.f32 s" #sum ", s" #sum ", s16\n\t"
    __asm__ volatile("vmov s16, %[divisor]\n"
                     "1:\n\t"
                     "mov %[at], %[x]\n\t"
                     "vmov d0, %[zero], %[zero]\n\t"
                     "vmov d1, %[zero], %[zero]\n\t"
                     "vmov d2, %[zero], %[zero]\n\t"
                     "vmov d3, %[zero], %[zero]\n\t"
                     "ldr %[r], [%[s], %[rows]]\n"
                     "2:\n\t"
                     "ldr %[n], [%[s], %[inputs]]\n"
                     "3:\n\t"
                     "vldmia %[at], {s8-s15}\n\t"
                     "add %[at], %[at], %[pixel]\n\t" /**/
                     BT_ADD(0, 8) BT_ADD(1, 9) BT_ADD(2, 10) BT_ADD(3, 11) /**/
                     BT_ADD(4, 12) BT_ADD(5, 13) BT_ADD(6, 14) BT_ADD(7, 15) /**/
                     "subs %[n], %[n], #1\n\t"
                     "bne 3b\n\t"
                     "ldr %[n], [%[s], %[x_step]]\n\t"
                     "add %[at], %[at], %[n], lsl #2\n\t"
                     "subs %[r], %[r], #1\n\t"
                     "bne 2b\n\t" /**/
                     BT_DIVIDE(0) BT_DIVIDE(1) BT_DIVIDE(2) BT_DIVIDE(3) /**/
                     BT_DIVIDE(4) BT_DIVIDE(5) BT_DIVIDE(6) BT_DIVIDE(7) /**/
                     "vstmia %[y]!, {s0-s7}\n\t"
                     "add %[x], %[x], #32\n\t"
                     "subs %[eights], %[eights], #1\n\t"
                     "bne 1b"
                     : [at] "=&r"(at), [r] "=&r"(rows), [n] "=&r"(n), [x] "+&r"(x), [y] "+&r"(y), [eights] "+&r"(eights)
                     : [s] "r"(s), [pixel] "r"(4 * s->out), [zero] "r"(0), [divisor] "r"(divisor), BT_FIELD(rows),
                       BT_FIELD(inputs), BT_FIELD(x_step)
                     : BT_SINGLES, "cc", "memory");
#undef BT_ADD
#undef BT_DIVIDE
}

BT_KERNEL void bt_avg_pool2d_f32_fpu(const bt_avg_pool2d_f32 *p, const float *x, float *y)
{
    const bt_windows s = {.rows = p->kernel_h,
                              .inputs = p->kernel_w,
                              .x_step = (p->in_w - p->kernel_w) * p->channels,
                              .out = p->channels};
    float divisor = (float)(p->divisor ? p->divisor : p->kernel_h * p->kernel_w);
    int32_t full = p->channels & ~7;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels) {
        for (int32_t h = 0; h < p->out_h; h++) {
            for (int32_t w = 0; w < p->out_w; w++, y += p->channels) {
                const float *window = x + (h * p->stride_h * p->in_w + w * p->stride_w) * p->channels;
                if (full)
                    bt_fpu_average(&s, window, y, full / 8, divisor);
                for (int32_t c = full; c < p->channels; c++) {
                    const float *at = window + c;
                    float sum = 0.0f;
                    for (int32_t r = 0; r < s.rows; r++, at += s.x_step)
                        for (int32_t k = 0; k < s.inputs; k++, at += s.out)
                            sum += *at;
                    y[c] = sum / divisor;
                }
            }
        }
    }
}
