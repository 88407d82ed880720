/* From reset to service, the same on every core. */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"

void bt_start(void)
{
    for (const bt_copy *c = bt_copies; c < bt_copies_end; c++) {
        const uint32_t *from = c->from;
        for (uint32_t *to = c->to; to < c->end; to++) {
            *to = *from++;
        }
    }
    for (uint32_t *to = bt_bss_start; to < bt_bss_end; to++) {
        *to = 0;
    }
    bt_stack_paint();
    bt_chip_init();
    bt_console_init();
    bt_counter_init();
    if (bt_chip_missing()) {
        bt_report_missing();
    }
#ifdef BT_CORES
    bt_core1_start(bt_core1_entry, bt_core1_stack_top);
#endif
    bt_serve();
}
