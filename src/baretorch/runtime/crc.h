/* CRC-32 (reflected 0xedb88320, as in zlib), of one more byte: begin with BT_CRC_BEGIN, and invert the result. */
#ifndef BT_CRC_H
#define BT_CRC_H

#include "bt_runtime.h"

#define BT_CRC_BEGIN 0xffffffffu

static inline uint32_t bt_crc_add(uint32_t crc, uint8_t byte)
{
    static const BT_FLASH uint32_t table[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    crc ^= byte;
    crc = (crc >> 4) ^ table[crc & 15u];
    return (crc >> 4) ^ table[crc & 15u];
}

#endif
