/* What the DMA of RP2040 and RP2350 share: the including file names bits. Channel 0 takes words from the stream of the
 * flash controller, which reads flash when no core needs it: a core that misses in the cache goes first. */
#ifndef BT_DMA_RP_H
#define BT_DMA_RP_H

#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "stream.h"

#define RESETS_SET BT_REG(RESETS_BASE + 0x2000u)
#define RESETS_CLEAR BT_REG(RESETS_BASE + 0x3000u)
#define RESETS_DONE (RESETS_BASE + 0x8u)
#define RESET_DMA (1u << 2)

#define READ_ADDR BT_REG(BT_DMA_BASE + 0x0u)
#define WRITE_ADDR BT_REG(BT_DMA_BASE + 0x4u)
#define TRANS_COUNT BT_REG(BT_DMA_BASE + 0x8u)
#define CTRL_TRIG BT_REG(BT_DMA_BASE + 0xcu) /* writing it begins */
#define CTRL_ENABLE 1u
#define CTRL_WORDS (2u << 2)

#define STREAM_STAT BT_REG(BT_DMA_STREAM - 0xcu)
#define STREAM_EMPTY (1u << 1)
#define STREAM_FIFO BT_REG(BT_DMA_STREAM + 0x8u)
#define STREAM_ADDR BT_REG(BT_DMA_STREAM)
#define STREAM_CTR BT_REG(BT_DMA_STREAM + 0x4u) /* words; writing it begins */

/* After the reset of a debugger, which is the core's alone, both may be in the middle of something. */
void bt_stream_start(void)
{
    RESETS_SET = RESET_DMA;
    RESETS_CLEAR = RESET_DMA;
    bt_wait(RESETS_DONE, RESET_DMA, RESET_DMA);
    STREAM_CTR = 0;
    while ((STREAM_STAT & STREAM_EMPTY) == 0) {
        (void)STREAM_FIFO;
    }
    READ_ADDR = BT_DMA_FIFO;
}

void bt_stream_begin(void *to, const void *from, uint32_t bytes)
{
    STREAM_ADDR = (uint32_t)(uintptr_t)from;
    STREAM_CTR = bytes / 4u;
    WRITE_ADDR = (uint32_t)(uintptr_t)to;
    TRANS_COUNT = bytes / 4u;
    CTRL_TRIG = CTRL_ENABLE | CTRL_WORDS | CTRL_INCR_WRITE | BT_DMA_DREQ << CTRL_TREQ;
}

void bt_stream_wait(void)
{
    while ((CTRL_TRIG & CTRL_BUSY) != 0) {
    }
    __asm__ volatile("" : : : "memory"); /* reads from now on see the copied bytes */
}

#endif
