/* The deepest stack so far: the stack is filled with a pattern first, and later searched for the rest of it. */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"

#define PAINT 0xb7b7b7b7u

static uint32_t *stack_pointer(void)
{
    uint32_t *sp;
#if defined(__riscv)
    __asm__ volatile("mv %0, sp" : "=r"(sp));
#else
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
    return sp;
}

#ifdef BT_CORES
#define LOWEST bt_core1_stack_limit /* core 1 has not begun: its stack, below core 0's, is painted too */
#else
#define LOWEST bt_stack_limit
#endif

/* Nothing is stored below the stack pointer: no core here has a red zone, and no interrupt is enabled. */
void bt_stack_paint(void)
{
    uint32_t *end = stack_pointer();
    for (uint32_t *word = LOWEST; word < end; word++) {
        *(volatile uint32_t *)word = PAINT;
    }
}

static inline uint32_t used(const uint32_t *limit, const uint32_t *top)
{
    const uint32_t *word = limit;
    while (word < top && *word == PAINT) {
        word++;
    }
    return (uint32_t)((uintptr_t)top - (uintptr_t)word);
}

uint32_t bt_stack_peak(void)
{
    uint32_t bytes = used(bt_stack_limit, bt_stack_top);
#ifdef BT_CORES
    bytes += used(bt_core1_stack_limit, bt_core1_stack_top);
#endif
#ifdef BT_TEAM
    const uint32_t *limit = bt_team_stacks; /* each core has filled its own */
    for (uint32_t core = 1; core < BT_TEAM; core++, limit += (uintptr_t)bt_team_stack_bytes / sizeof *limit) {
        bytes += used(limit, limit + (uintptr_t)bt_team_stack_bytes / sizeof *limit);
    }
#endif
    return bytes;
}
