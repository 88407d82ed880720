/* The nRF51's TIMER0, its only 32-bit one, at the full 16 MHz; after reset it is a timer, and at 0. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define TASKS_START BT_REG(BT_COUNTER_BASE + 0x000u)
#define TASKS_CAPTURE0 BT_REG(BT_COUNTER_BASE + 0x040u)
#define BITMODE BT_REG(BT_COUNTER_BASE + 0x508u)
#define PRESCALER BT_REG(BT_COUNTER_BASE + 0x510u)
#define CC0 BT_REG(BT_COUNTER_BASE + 0x540u)

#define BITMODE_32 3u

void bt_counter_init(void)
{
    BITMODE = BITMODE_32;
    PRESCALER = 0;
    TASKS_START = 1;
}

uint32_t bt_counter_read(void)
{
    TASKS_CAPTURE0 = 1;
    return CC0;
}
