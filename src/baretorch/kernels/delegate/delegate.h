/* A region of the model that an Arm Ethos-U computes: Vela's command stream, started and waited for. */
#ifndef BT_DELEGATE_H
#define BT_DELEGATE_H

#include "../bt.h"
#include "../npu.h"

#define BT_DELEGATE_PARTS 8

/* A region of which the commands expect inputs and outputs inside the scratch, as ExecuTorch's do. */
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

#ifndef BT_INLINE_KERNELS
void bt_delegate_npu(const bt_npu_job *p, const int8_t *x, const int32_t *commands, const uint8_t *weights, int8_t *y,
                     void *scratch);

/* x and y are rows of inputs and outputs, which are copied. */
void bt_delegate_copied(const bt_delegate_copied_params *p, const int8_t *x, const int32_t *commands,
                        const uint8_t *weights, int8_t *y, void *scratch);
#endif

#endif
