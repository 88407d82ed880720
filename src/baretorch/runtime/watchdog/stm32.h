/* The independent watchdog of STM32s, which runs from their slow internal oscillator: the including file names it, and
 * the register with the reason of the last start. */
#ifndef BT_WATCHDOG_STM32_H
#define BT_WATCHDOG_STM32_H

#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define KR BT_REG(IWDG_BASE + 0x0u)
#define PR BT_REG(IWDG_BASE + 0x4u)
#define RLR BT_REG(IWDG_BASE + 0x8u)
#define SR (IWDG_BASE + 0xcu)
#define KR_START 0xccccu
#define KR_UNLOCK 0x5555u
#define KR_FEED 0xaaaau
#define PR_256 6u
#define SR_BUSY 3u

static int bit;

void bt_watchdog_start(void)
{
    bit = (CAUSE & CAUSE_IWDG) != 0;
    CAUSE |= CAUSE_FORGET;
    KR = KR_START;
    KR = KR_UNLOCK;
    PR = PR_256;
    RLR = BT_WATCHDOG_COUNT;
    bt_wait(SR, SR_BUSY, 0);
    bt_watchdog_feed();
}

void bt_watchdog_feed(void)
{
    KR = KR_FEED;
}

int bt_watchdog_bit(void)
{
    return bit;
}

#endif
