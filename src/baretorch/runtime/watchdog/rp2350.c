/* RP2350. Its tick is one of those that chip/rp2350.c starts another of. */
#define WATCHDOG_BASE 0x400d8000u
#define WATCHDOG_SELECT BT_REG(0x40018008u) /* PSM WDSEL */
#define WATCHDOG_ALL_BUT_OSCILLATORS 0x1fffff3u
#define WATCHDOG_TICK() (BT_REG(0x40108034u) = BT_REG(0x4010801cu), BT_REG(0x40108030u) = 1u) /* as TIMER0's */
#include "rp.h"
