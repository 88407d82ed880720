/* The deepest stack so far: the stack is filled with a pattern first, and later searched for the rest of it. */
#include "bt_image.h"
#include "bt_runtime.h"

#define PAINT 0xb7u
#define LIMIT ((uint8_t *)bt_stack_limit)
#define TOP ((uint8_t *)bt_stack_top)
#define SP (*(uint8_t *volatile *)0x5d)

/* The stack pointer is the address of the next byte. No interrupt is enabled. */
void bt_stack_paint(void)
{
    uint8_t *end = SP;
    for (uint8_t *byte = LIMIT; byte < end; byte++) {
        *(volatile uint8_t *)byte = PAINT;
    }
}

uint32_t bt_stack_peak(void)
{
    const uint8_t *byte = LIMIT;
    while (byte < TOP && *byte == PAINT) {
        byte++;
    }
    return (uint16_t)(TOP - byte);
}
