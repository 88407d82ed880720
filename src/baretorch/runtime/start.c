/* From reset to service, the same on every core. */
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"
#ifdef BT_TEAM
#include "team.h"
#endif

static void copy(const bt_copy *c, const bt_copy *end)
{
    for (; c < end; c++) {
        const uint32_t *from = c->from;
        for (uint32_t *to = c->to; to < c->end; to++) {
            *to = *from++;
        }
    }
}

/* Weights are copied once the chip is as fast as it will be, if it has a clock to start. */
#ifdef BT_SLOW_FLASH
#define AT_ONCE_END bt_weight_copies
#else
#define AT_ONCE_END bt_copies_end
#endif

#ifdef BT_CORES
/* Half of the model cannot run without it: this is the only reply to all requests. */
static __attribute__((noreturn)) void stop(const char *why)
{
    for (;;) {
        bt_print("\nFAULT: ");
        bt_print(why);
        bt_print("\nEND OF FAULT\n");
        (void)bt_console_get();
    }
}
#endif

void bt_start(void)
{
#ifdef BT_DMA_STREAM
    bt_chip_quiet();
#endif
    copy(bt_copies, AT_ONCE_END);
    for (uint32_t *to = bt_bss_start; to < bt_bss_end; to++) {
        *to = 0;
    }
    bt_stack_paint();
    bt_chip_init();
#ifdef BT_SLOW_FLASH
    copy(AT_ONCE_END, bt_copies_end);
#endif
    bt_console_init();
    bt_counter_init();
    if (bt_chip_missing()) {
        bt_report_missing();
    }
#ifdef BT_TEAM
    bt_team_meet(); /* the other cores continue */
#endif
#ifdef BT_CORES
    if (!bt_core1_start(bt_core1_entry, bt_core1_stack_top)) {
        stop("core 1 does not start");
    }
#endif
    bt_watchdog_start();
    if (bt_watchdog_bit()) {
        bt_print("baretorch: the watchdog restarted the chip\n");
    }
#ifdef BT_APP
    bt_main();
    for (;;) { /* it should not have returned */
    }
#else
    bt_serve();
#endif
}
