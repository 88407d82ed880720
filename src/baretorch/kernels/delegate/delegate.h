/* A region of the model that an Arm Ethos-U computes: Vela's command stream, started and waited for. */
#ifndef BT_DELEGATE_H
#define BT_DELEGATE_H

#include <stdint.h>

#include "../bt.h"

typedef struct {
    uint32_t config;        /* what the NPU's register CONFIG must read */
    uint32_t command_bytes; /* of the stream */
} bt_delegate;

/* The regions of a command stream. */
enum { BT_NPU_WEIGHTS, BT_NPU_SCRATCH, BT_NPU_FAST, BT_NPU_INPUT, BT_NPU_OUTPUT, BT_NPU_REGIONS };

/* Runs a command stream to its end. Images have it from runtime/npu/; an application with a driver of its own calls that.
 * It does not return if the NPU failed: what the regions hold then is no answer. */
void bt_npu_run(uint32_t config, const int32_t *commands, uint32_t command_bytes, const void *const *regions);

BT_KERNEL void bt_delegate_npu(const bt_delegate *p, const int8_t *x, const int32_t *commands, const uint8_t *weights,
                               int8_t *y, void *scratch);

#endif
