/* The microsecond timer of the RP2040 and RP2350; the chip's start-up code starts its tick. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define TIMERAWL BT_REG(BT_COUNTER_BASE + 0x28u)

void bt_counter_init(void)
{
}

uint32_t bt_counter_read(void)
{
    return TIMERAWL;
}
