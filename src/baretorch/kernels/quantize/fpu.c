/* quantize and dequantize for Arm cores with FPU and DSP extension (Cortex-M4F, M7, M33): four numbers at a time, in 25
 * instructions and in 18. Compilers make 80 and 32 of ref.c. */
#include "quantize.h"

#define BT_QUANTIZE_TO(r, y) "qadd " r ", " r ", %[zero]\n\tssat " r ", #8, " r "\n\tstrb " r ", [" y "], #1\n\t"

/* VCVTR rounds as sums do, half to even, limits to 32 bits and makes NaN 0. */
BT_KERNEL void bt_quantize_fpu(const bt_quantize *p, const float *x, int8_t *y)
{
    int32_t fours = p->count >> 2, a, b, c, d;
    if (fours)
        __asm__ volatile("1:\n\t"
                         "vldmia %[x]!, {s0-s3}\n\t"
                         "vmul.f32 s0, s0, %[factor]\n\t"
                         "vmul.f32 s1, s1, %[factor]\n\t"
                         "vmul.f32 s2, s2, %[factor]\n\t"
                         "vmul.f32 s3, s3, %[factor]\n\t"
                         "vcvtr.s32.f32 s0, s0\n\t"
                         "vcvtr.s32.f32 s1, s1\n\t"
                         "vcvtr.s32.f32 s2, s2\n\t"
                         "vcvtr.s32.f32 s3, s3\n\t"
                         "vmov %[a], %[b], s0, s1\n\t"
                         "vmov %[c], %[d], s2, s3\n\t" /**/
                         BT_QUANTIZE_TO("%[a]", "%[y]") BT_QUANTIZE_TO("%[b]", "%[y]")
                         BT_QUANTIZE_TO("%[c]", "%[y]") BT_QUANTIZE_TO("%[d]", "%[y]")
                         "subs %[fours], %[fours], #1\n\t"
                         "bne 1b"
                         : [x] "+&r"(x), [y] "+&r"(y), [fours] "+&r"(fours), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
                           [d] "=&r"(d)
                         : [factor] "t"(p->factor), [zero] "r"(p->zero)
                         : "s0", "s1", "s2", "s3", "cc", "memory");
    for (int32_t rest = p->count & 3; rest > 0; rest--)
        __asm__ volatile("vldmia %[x]!, {s0}\n\t"
                         "vmul.f32 s0, s0, %[factor]\n\t"
                         "vcvtr.s32.f32 s0, s0\n\t"
                         "vmov %[a], s0\n\t" BT_QUANTIZE_TO("%[a]", "%[y]")
                         : [x] "+&r"(x), [y] "+&r"(y), [a] "=&r"(a)
                         : [factor] "t"(p->factor), [zero] "r"(p->zero)
                         : "s0", "memory");
}

#undef BT_QUANTIZE_TO

BT_KERNEL void bt_dequantize_fpu(const bt_quantize *p, const int8_t *x, float *y)
{
    const uint32_t below = (uint32_t)-p->zero & 0xffff; /* of both halfwords */
    int32_t fours = p->count >> 2, a, b;
    if (fours)
        __asm__ volatile("1:\n\t"
                         "ldr %[a], [%[x]], #4\n\t"
                         "sxtab16 %[b], %[below], %[a], ror #8\n\t"
                         "sxtab16 %[a], %[below], %[a]\n\t"
                         "vmov s0, s1, %[a], %[b]\n\t"
                         "asr %[a], %[a], #16\n\t"
                         "asr %[b], %[b], #16\n\t"
                         "vmov s2, s3, %[a], %[b]\n\t"
                         "vcvt.f32.s16 s0, s0, #0\n\t"
                         "vcvt.f32.s16 s1, s1, #0\n\t"
                         "vcvt.f32.s32 s2, s2\n\t"
                         "vcvt.f32.s32 s3, s3\n\t"
                         "vmul.f32 s0, s0, %[factor]\n\t"
                         "vmul.f32 s1, s1, %[factor]\n\t"
                         "vmul.f32 s2, s2, %[factor]\n\t"
                         "vmul.f32 s3, s3, %[factor]\n\t"
                         "vstmia %[y]!, {s0-s3}\n\t"
                         "subs %[fours], %[fours], #1\n\t"
                         "bne 1b"
                         : [x] "+&r"(x), [y] "+&r"(y), [fours] "+&r"(fours), [a] "=&r"(a), [b] "=&r"(b)
                         : [factor] "t"(p->factor), [below] "r"(below << 16 | below)
                         : "s0", "s1", "s2", "s3", "cc", "memory");
    for (int32_t rest = p->count & 3; rest > 0; rest--)
        *y++ = (float)(*x++ - p->zero) * p->factor;
}
