/* How deep the stack has ever been: it is filled with a pattern first, and what is left of it is looked at later. */
#include "bt_image.h"
#include "bt_runtime.h"

#define PAINT 0xb7u
#define LIMIT ((uint8_t *)bt_stack_limit)
#define TOP ((uint8_t *)bt_stack_top)
#define SP (*(uint8_t *volatile *)0x5d)

/* The stack pointer says where the next byte goes. No interrupt is on. */
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
