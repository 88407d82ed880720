/* A second comparator of the nRF51's timer that counts for counter/nrf_timer.c: this core has no timer of its own. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define TASKS_CAPTURE1 BT_REG(BT_ALARM_BASE + 0x044u)
#define EVENTS_COMPARE1 BT_REG(BT_ALARM_BASE + 0x144u)
#define INTENSET BT_REG(BT_ALARM_BASE + 0x304u)
#define INTENCLR BT_REG(BT_ALARM_BASE + 0x308u)
#define CC1 BT_REG(BT_ALARM_BASE + 0x544u)
#define INT_COMPARE1 (1u << 17)

void bt_alarm_start(uint32_t ms)
{
    TASKS_CAPTURE1 = 1;
    CC1 += BT_ALARM_PER_MS * ms;
    EVENTS_COMPARE1 = 0;
}

void bt_alarm_wakes(int on)
{
    *(on ? &INTENSET : &INTENCLR) = INT_COMPARE1;
}

int bt_alarm_rang(void)
{
    return EVENTS_COMPARE1 != 0;
}

void bt_alarm_stop(void)
{
    EVENTS_COMPARE1 = 0;
}
