/* Everything is where Vela expects it: nothing is copied. */
#include "delegate.h"

BT_KERNEL void bt_delegate_npu(const bt_npu_job *p, const int8_t *x, const int32_t *commands, const uint8_t *weights,
                               int8_t *y, void *scratch)
{
    const void *const regions[BT_NPU_REGIONS] = {
        [BT_NPU_WEIGHTS] = weights, [BT_NPU_SCRATCH] = scratch, [BT_NPU_FAST] = scratch,
        [BT_NPU_INPUT] = x,         [BT_NPU_OUTPUT] = y,
    };
    bt_npu_run(p, commands, regions);
}
