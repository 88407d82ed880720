/* The hart's cycle counter. */
#include "bt_runtime.h"

void bt_counter_init(void)
{
}

uint32_t bt_counter_read(void)
{
    uint32_t cycles;
    __asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
    return cycles;
}
