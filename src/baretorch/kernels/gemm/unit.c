/* A layer that a cluster's GEMM unit computes. */
#include "gemm.h"

/* The core may go on, up to bt_gemm_wait. */
BT_KERNEL void bt_gemm_begin(const bt_gemm *p, const int8_t *x, const int32_t *constants, int8_t *y)
{
    const int32_t *const bias = constants + ((p->kernel_h * p->kernel_w * p->in * p->out + 3) >> 2);
    bt_gemm_start(p, x, (const int8_t *)constants, bias, bias + p->out, y);
}

/* The core sleeps meanwhile. */
BT_KERNEL void bt_gemm_unit(const bt_gemm *p, const int8_t *x, const int32_t *constants, int8_t *y)
{
    bt_gemm_begin(p, x, constants, y);
    bt_gemm_wait(p->unit);
}
