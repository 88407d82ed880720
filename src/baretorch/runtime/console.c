/* Waiting for what the host sends. */
#include "bt_board.h"
#include "bt_runtime.h"

uint8_t bt_console_get(void)
{
    bt_mask_interrupts();
    while (!bt_console_ready()) {
        bt_sleep();
    }
    bt_unmask_interrupts();
    return bt_console_take();
}
