/* From reset to service, the same on every core. */
#include "bt_image.h"
#include "bt_runtime.h"

void bt_start(void)
{
    const uint32_t *from = bt_data_load;
    for (uint32_t *to = bt_data_start; to < bt_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = bt_bss_start; to < bt_bss_end; to++) {
        *to = 0;
    }
    bt_stack_paint();
    bt_chip_init();
    bt_console_init();
    bt_counter_init();
    bt_serve();
}
