/* What the watchdogs of RP2040 and RP2350 share: the including file names addresses. */
#ifndef BT_WATCHDOG_RP_H
#define BT_WATCHDOG_RP_H

#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define CTRL BT_REG(WATCHDOG_BASE + 0x0u)
#define LOAD BT_REG(WATCHDOG_BASE + 0x4u)
#define REASON BT_REG(WATCHDOG_BASE + 0x8u)
#define SCRATCH4 BT_REG(WATCHDOG_BASE + 0x1cu) /* only a power-up and the boot ROM forget it */
#define CTRL_ENABLE (1u << 30)
#define CTRL_PAUSE_FOR_DEBUGGERS (7u << 24)
#define REASON_TIMER (1u << 0)
#define STARTED 0x676f6474u /* not what the boot ROM would take for an address to jump to */

static int bit;

/* The boot ROM restarts the chip by the watchdog too, once a UF2 is copied. It writes to SCRATCH4 before. */
void bt_watchdog_start(void)
{
    bit = (REASON & REASON_TIMER) != 0 && SCRATCH4 == STARTED;
    SCRATCH4 = STARTED;
    WATCHDOG_SELECT = WATCHDOG_ALL_BUT_OSCILLATORS;
    WATCHDOG_TICK();
    bt_watchdog_feed();
    CTRL = CTRL_ENABLE | CTRL_PAUSE_FOR_DEBUGGERS;
}

void bt_watchdog_feed(void)
{
    LOAD = BT_WATCHDOG_COUNT;
}

int bt_watchdog_bit(void)
{
    return bit;
}

#endif
