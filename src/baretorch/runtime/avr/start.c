/* From C's world, which startup.S has made, to service. */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"

void bt_unexpected(void);

/* The one fault that this core knows. */
void bt_unexpected(void)
{
    bt_print(BT_TEXT("\nFAULT: an interrupt that was never enabled\nEND OF FAULT\n"));
    for (;;) {
    }
}

void bt_start(void)
{
    bt_stack_paint();
    bt_chip_init();
    bt_console_init();
    bt_counter_init();
    bt_serve();
}
