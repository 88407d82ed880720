/* Waiting for what the host sends. Interrupts that have a handler get their turn each time the core wakes. */
#include "bt_board.h"
#include "bt_runtime.h"

static void sleep_until_alarm(void)
{
    bt_alarm_wakes(1);
    bt_sleep();
    bt_alarm_wakes(0);
    bt_unmask_interrupts();
    bt_mask_interrupts();
}

#ifdef BT_WATCHDOG_MS
/* It must be fed meanwhile, so the core never sleeps for long. */
void bt_nap(void)
{
    bt_watchdog_feed();
    bt_alarm_start(BT_WATCHDOG_MS / 2u);
    sleep_until_alarm();
    bt_alarm_stop();
}
#else
void bt_nap(void)
{
    bt_sleep();
    bt_unmask_interrupts();
    bt_mask_interrupts();
}
#endif

uint8_t bt_console_get(void)
{
    bt_mask_interrupts();
    while (!bt_console_ready()) {
        bt_nap();
    }
    bt_unmask_interrupts();
    bt_watchdog_feed();
    return bt_console_take();
}

int bt_console_get_soon(uint8_t *byte, uint32_t ms)
{
    int ready = bt_console_ready();
    bt_watchdog_feed();
    if (!ready) {
        bt_alarm_start(ms);
        bt_mask_interrupts();
        while (!(ready = bt_console_ready()) && !bt_alarm_rang()) {
            sleep_until_alarm();
        }
        bt_unmask_interrupts();
        bt_alarm_stop();
    }
    if (ready) {
        *byte = bt_console_take();
    }
    return ready;
}
