/* quantize and dequantize for Arm cores with Helium: four numbers at a time. */
#include <arm_mve.h>

#include "quantize.h"

/* VCVTN rounds half to even, limits to 32 bits and makes NaN 0. */
BT_KERNEL void bt_quantize_mve(const bt_quantize *p, const float *x, int8_t *y)
{
    const int32x4_t lo = vdupq_n_s32(-128), hi = vdupq_n_s32(127);
    float32x4_t v;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrw.u32 %q[v], [%[x]], #16\n\t"
                     "vmul.f32 %q[v], %q[v], %[factor]\n\t"
                     "vcvtn.s32.f32 %q[v], %q[v]\n\t"
                     "vqadd.s32 %q[v], %q[v], %[zero]\n\t"
                     "vmax.s32 %q[v], %q[v], %q[lo]\n\t"
                     "vmin.s32 %q[v], %q[v], %q[hi]\n\t"
                     "vstrb.32 %q[v], [%[y]], #4\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+&r"(x), [y] "+&l"(y), [v] "=&w"(v)
                     : [n] "r"(p->count), [factor] "r"(p->factor), [zero] "r"(p->zero), [lo] "w"(lo), [hi] "w"(hi)
                     : "lr", "cc", "memory");
}

BT_KERNEL void bt_dequantize_mve(const bt_quantize *p, const int8_t *x, float *y)
{
    float32x4_t v;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.s32 %q[v], [%[x]], #4\n\t"
                     "vsub.i32 %q[v], %q[v], %[zero]\n\t"
                     "vcvt.f32.s32 %q[v], %q[v]\n\t"
                     "vmul.f32 %q[v], %q[v], %[factor]\n\t"
                     "vstrw.32 %q[v], [%[y]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+&l"(x), [y] "+&r"(y), [v] "=&w"(v)
                     : [n] "r"(p->count), [factor] "r"(p->factor), [zero] "r"(p->zero)
                     : "lr", "cc", "memory");
}
