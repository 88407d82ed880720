/* nRF51: counts the slow oscillator, which it starts itself. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define WDT 0x40010000u
#define TASKS_START BT_REG(WDT + 0x000u)
#define CRV BT_REG(WDT + 0x504u)
#define RREN BT_REG(WDT + 0x508u)
#define RR0 BT_REG(WDT + 0x600u)
#define RR_FEED 0x6e524635u
#define POWER_RESETREAS BT_REG(0x40000400u) /* writing a bit clears it */
#define RESETREAS_DOG (1u << 1)

static int bit;

void bt_watchdog_start(void)
{
    bit = (POWER_RESETREAS & RESETREAS_DOG) != 0;
    POWER_RESETREAS = RESETREAS_DOG;
    CRV = BT_WATCHDOG_COUNT;
    RREN = 1;
    TASKS_START = 1;
}

void bt_watchdog_feed(void)
{
    RR0 = RR_FEED;
}

int bt_watchdog_bit(void)
{
    return bit;
}
