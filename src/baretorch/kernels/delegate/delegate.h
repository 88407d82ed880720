/* A region of the model that an Arm Ethos-U computes: Vela's command stream, started and waited for. */
#ifndef BT_DELEGATE_H
#define BT_DELEGATE_H

#include "../bt.h"
#include "../npu.h"

BT_KERNEL void bt_delegate_npu(const bt_npu_job *p, const int8_t *x, const int32_t *commands, const uint8_t *weights,
                               int8_t *y, void *scratch);

#endif
