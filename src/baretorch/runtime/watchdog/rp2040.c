/* RP2040. Its counter goes down twice per microsecond (erratum RP2040-E1); chip/rp2040.c has started that tick. */
#define WATCHDOG_BASE 0x40058000u
#define WATCHDOG_SELECT BT_REG(0x40010008u) /* PSM WDSEL */
#define WATCHDOG_ALL_BUT_OSCILLATORS 0x1fffcu
#define WATCHDOG_TICK() ((void)0)
#include "rp.h"
