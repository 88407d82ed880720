/* The input of a driver of an Arm Ethos-U. */
#ifndef BT_NPU_H
#define BT_NPU_H

#include <stdint.h>

typedef struct {
    uint32_t config;        /* the NPU's register CONFIG; bits that a stream does not depend on may differ */
    uint32_t command_bytes; /* of the stream */
    uint32_t weight_bytes;
    uint32_t crc; /* CRC-32, as zlib's, of the stream and the weights after it */
} bt_npu_job;

/* The regions of a command stream. */
enum { BT_NPU_WEIGHTS, BT_NPU_SCRATCH, BT_NPU_FAST, BT_NPU_INPUT, BT_NPU_OUTPUT, BT_NPU_REGIONS };

/* Runs a command stream to its end. Images have it from runtime/npu/; an application with a driver of its own calls that.
 * It does not return if the NPU failed, or if the checksum is another one before the first start: the
 * regions then do not hold a result. */
void bt_npu_run(const bt_npu_job *job, const int32_t *commands, const void *const *regions);

#endif
