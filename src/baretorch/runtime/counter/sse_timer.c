/* The system counter of Arm's SSE-300 subsystem, seen through one of its timers. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define CNTPCT_LOW BT_REG(BT_COUNTER_BASE + 0x0u)
#define CNTCR BT_REG(0x58100000u) /* the counter's control frame has a secure address only */

#define CNTCR_ENABLE 1u

void bt_counter_init(void)
{
    CNTCR = CNTCR_ENABLE;
}

uint32_t bt_counter_read(void)
{
    return CNTPCT_LOW;
}
