/* A cluster's cores together: the barrier of its event unit, its DMA engine, and counters of a core.
 * A core must wait for a started copy before any core touches its target; the emulator detects violations. */
#ifndef BT_CLUSTER_RUNTIME_H
#define BT_CLUSTER_RUNTIME_H

#include <stdint.h>

#include "bt_board.h"

#define BT_CLUSTER_REG(base, index) (*(volatile uint32_t *)(uintptr_t)((base) + 4u * (index)))

static inline uint32_t bt_core_number(void)
{
    uint32_t number;
    __asm__ volatile("csrr %0, mhartid" : "=r"(number));
    return number;
}

/* Cycles since reset. */
static inline uint32_t bt_cycles(void)
{
    uint32_t cycles;
    __asm__ volatile("csrr %0, mcycle" : "=r"(cycles) : : "memory");
    return cycles;
}

/* cv.elw: a load that is granted when what it waits for has come; the core sleeps until then. */
static inline uint32_t bt_wait_at(uintptr_t address)
{
    uint32_t value;
    __asm__ volatile(".insn i 0x0b, 3, %0, %1, 0" : "=r"(value) : "r"(address) : "memory");
    return value;
}

/* All cores of the team are here; what they wrote before is there for all after. */
static inline void bt_barrier(void)
{
    (void)bt_wait_at(BT_EVENTS_BASE);
}

/* Which cores a barrier waits for, a bit each; at reset all. */
static inline void bt_barrier_team(uint32_t cores)
{
    BT_CLUSTER_REG(BT_EVENTS_BASE, 1) = cores;
}

#ifdef BT_DMA_BASE
/* Copies `rows` rows of `bytes`, which are `from_step` and `to_step` bytes apart, on an unused channel. */
static inline void bt_dma_start(uint32_t channel, void *to, uint32_t to_step, const void *from, uint32_t from_step,
                                uint32_t bytes, uint32_t rows)
{
    BT_CLUSTER_REG(BT_DMA_BASE, 0) = (uint32_t)(uintptr_t)from;
    BT_CLUSTER_REG(BT_DMA_BASE, 1) = (uint32_t)(uintptr_t)to;
    BT_CLUSTER_REG(BT_DMA_BASE, 2) = bytes;
    BT_CLUSTER_REG(BT_DMA_BASE, 3) = rows;
    BT_CLUSTER_REG(BT_DMA_BASE, 4) = from_step;
    BT_CLUSTER_REG(BT_DMA_BASE, 5) = to_step;
    __asm__ volatile("" : : : "memory");
    BT_CLUSTER_REG(BT_DMA_BASE, 6) = channel;
}

static inline void bt_dma_wait(uint32_t channel)
{
    (void)bt_wait_at(BT_DMA_BASE + 0x40u + 4u * channel);
}
#endif

#endif
