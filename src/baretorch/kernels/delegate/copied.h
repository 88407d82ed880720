/* A region of which the commands expect inputs and outputs inside the scratch, as ExecuTorch's do: x and y are rows of
 * them. */
#ifndef BT_DELEGATE_COPIED_H
#define BT_DELEGATE_COPIED_H

#include "../bt.h"
#include "../npu.h"

#define BT_DELEGATE_PARTS 8

typedef struct {
    uint32_t config; /* as in bt_npu_job */
    uint32_t command_bytes;
    uint32_t weight_bytes;
    uint32_t crc;
    int32_t inputs;
    int32_t input_places[BT_DELEGATE_PARTS];
    int32_t input_bytes[BT_DELEGATE_PARTS];
    int32_t outputs;
    int32_t output_places[BT_DELEGATE_PARTS];
    int32_t output_bytes[BT_DELEGATE_PARTS];
} bt_delegate_copied_params;

BT_KERNEL void bt_delegate_copied(const bt_delegate_copied_params *p, const int8_t *x, const int32_t *commands,
                                  const uint8_t *weights, int8_t *y, void *scratch);

#endif
