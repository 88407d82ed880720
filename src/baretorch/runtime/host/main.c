/* The host board: an ordinary program. Its stack belongs to the operating system and is not measured. */
#include "bt_runtime.h"

uint32_t bt_stack_peak(void)
{
    return 0;
}

int main(void)
{
    bt_chip_init();
    bt_console_init();
    bt_counter_init();
    bt_serve();
    return 0;
}
