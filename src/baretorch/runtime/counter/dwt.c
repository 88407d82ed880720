/* The core's cycle counter, in its Data Watchpoint and Trace unit (Armv7-M and later). */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define DWT_CTRL BT_REG(BT_COUNTER_BASE + 0x000u)
#define DWT_CYCCNT BT_REG(BT_COUNTER_BASE + 0x004u)
#define DWT_LAR BT_REG(BT_COUNTER_BASE + 0xfb0u)
#define DEMCR BT_REG(0xe000edfcu)

#define DEMCR_TRCENA (1u << 24)
#define LAR_UNLOCK 0xc5acce55u

void bt_counter_init(void)
{
    DEMCR |= DEMCR_TRCENA;
    DWT_LAR = LAR_UNLOCK; /* the Cortex-M7 keeps the unit locked after reset */
    DWT_CTRL |= 1u;
}

uint32_t bt_counter_read(void)
{
    return DWT_CYCCNT;
}
