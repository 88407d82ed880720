/* How deep the stack has ever been: it is filled with a pattern first, and what is left of it is looked at later. */
#include "bt_image.h"
#include "bt_runtime.h"

#define PAINT 0xb7b7b7b7u
#define MARGIN 32 /* words below this function's frame that may be in use while it paints */

void bt_stack_paint(void)
{
    uint32_t *end = (uint32_t *)__builtin_frame_address(0) - MARGIN;
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
