/* Inputs and outputs are copied to their places in the scratch, and from there. */
#include "delegate.h"

BT_KERNEL void bt_delegate_copied(const bt_delegate_copied_params *p, const int8_t *x, const int32_t *commands,
                                  const uint8_t *weights, int8_t *y, void *scratch)
{
    const bt_npu_job job = {p->config, p->command_bytes, p->weight_bytes, p->crc};
    const void *const regions[BT_NPU_REGIONS] = {
        [BT_NPU_WEIGHTS] = weights, [BT_NPU_SCRATCH] = scratch, [BT_NPU_FAST] = scratch,
        [BT_NPU_INPUT] = scratch,   [BT_NPU_OUTPUT] = scratch,
    };
    for (int32_t i = 0; i < p->inputs; i++) {
        __builtin_memcpy((int8_t *)scratch + p->input_places[i], x, (size_t)p->input_bytes[i]);
        x += p->input_bytes[i];
    }
    bt_npu_run(&job, commands, regions);
    for (int32_t i = 0; i < p->outputs; i++) {
        __builtin_memcpy(y, (const int8_t *)scratch + p->output_places[i], (size_t)p->output_bytes[i]);
        y += p->output_bytes[i];
    }
}
