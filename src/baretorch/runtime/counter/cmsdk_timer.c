/* The timer of Arm's Cortex-M System Design Kit, as on MPS2 and MPS3 boards: it counts down, we count up. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define CTRL BT_REG(BT_COUNTER_BASE + 0x0u)
#define VALUE BT_REG(BT_COUNTER_BASE + 0x4u)
#define RELOAD BT_REG(BT_COUNTER_BASE + 0x8u)

void bt_counter_init(void)
{
    RELOAD = 0xffffffffu;
    VALUE = 0xffffffffu;
    CTRL = 1u;
}

uint32_t bt_counter_read(void)
{
    return ~VALUE;
}
