/* A layer on a cluster's GEMM unit, which multiplies int8 matrices in the scratchpad:
 *
 * y[h, w, o] = requantize(max over a pool's windows of bias[o] + sum over kh, kw, i of x[...] * weight[o, kh, kw, i])
 *
 * as qconv2d.h has it, with one group and without dilation. A linear layer is that with windows of one pixel. */
#ifndef BT_GEMM_H
#define BT_GEMM_H

#include "../bt.h"

/* The fields from `in_h` on are in the order of the unit's registers. */
typedef struct {
    uint32_t unit; /* their address */
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out; /* of y: after the pool */
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t pool_h, pool_w;
    int32_t y_step; /* bytes from one pixel of y to the next */
    int32_t x_zero, zero, lo, hi, shift;
} bt_gemm;

/* Starts the unit: its operands must not change until bt_gemm_wait. weight: [out][kernel_h][kernel_w][in] */
BT_INLINE void bt_gemm_start(const bt_gemm *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                             const int32_t *multiplier, int8_t *y)
{
    volatile uint32_t *const r = (volatile uint32_t *)(uintptr_t)p->unit;
    __asm__ volatile("" : : : "memory"); /* results computed before are complete */
    r[0] = (uint32_t)(uintptr_t)x;
    r[1] = (uint32_t)(uintptr_t)weight;
    r[2] = (uint32_t)(uintptr_t)y;
    r[3] = (uint32_t)(uintptr_t)bias;
    r[4] = (uint32_t)(uintptr_t)multiplier;
    r[5] = (uint32_t)p->in_h;
    r[6] = (uint32_t)p->in_w;
    r[7] = (uint32_t)p->in;
    r[8] = (uint32_t)p->out_h;
    r[9] = (uint32_t)p->out_w;
    r[10] = (uint32_t)p->out;
    r[11] = (uint32_t)p->kernel_h;
    r[12] = (uint32_t)p->kernel_w;
    r[13] = (uint32_t)p->stride_h;
    r[14] = (uint32_t)p->stride_w;
    r[15] = (uint32_t)p->pad_top;
    r[16] = (uint32_t)p->pad_left;
    r[17] = (uint32_t)p->pool_h;
    r[18] = (uint32_t)p->pool_w;
    r[19] = (uint32_t)p->y_step;
    r[20] = (uint32_t)p->x_zero;
    r[21] = (uint32_t)p->zero;
    r[22] = (uint32_t)p->lo;
    r[23] = (uint32_t)p->hi;
    r[24] = (uint32_t)p->shift;
    r[25] = 1;
}

/* The core sleeps until the unit is done. */
BT_INLINE void bt_gemm_wait(uint32_t unit)
{
    uint32_t value;
    __asm__ volatile(".insn i 0x0b, 3, %0, %1, 0" : "=r"(value) : "r"(unit + 4u * 26u) : "memory"); /* cv.elw */
    (void)value;
}

#ifndef BT_INLINE_KERNELS
/* constants: weight, rounded up to words, bias, multiplier */
void bt_gemm_unit(const bt_gemm *p, const int8_t *x, const int32_t *constants, int8_t *y);
void bt_gemm_begin(const bt_gemm *p, const int8_t *x, const int32_t *constants, int8_t *y);
#endif

#endif
