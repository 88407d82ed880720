/* How deep the stack has ever been: it is filled with a pattern first, and what is left of it is looked at later. */
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

/* Nothing lies below the stack pointer: no core here has a red zone, and no interrupt is on. */
void bt_stack_paint(void)
{
    uint32_t *end = stack_pointer();
    for (uint32_t *word = bt_stack_limit; word < end; word++) {
        *(volatile uint32_t *)word = PAINT;
    }
}

uint32_t bt_stack_peak(void)
{
    const uint32_t *word = bt_stack_limit;
    while (word < bt_stack_top && *word == PAINT) {
        word++;
    }
    return (uint32_t)((uintptr_t)bt_stack_top - (uintptr_t)word);
}
