/* The timer of Cortex-M cores. It counts 24 bits of the core's clock, so a long time is several short ones. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define CSR BT_REG(BT_ALARM_BASE)
#define RVR BT_REG(BT_ALARM_BASE + 0x4u)
#define CVR BT_REG(BT_ALARM_BASE + 0x8u)
#define ICSR BT_REG(0xe000ed04u)
#define CSR_ENABLE_CORE_CLOCK 5u
#define CSR_TICKINT 2u
#define ICSR_PENDSTCLR (1u << 25)
#define CSR_COUNTFLAG (1u << 16) /* it has reached zero since the last read */

#define ROUND_MS 10u

static uint32_t rounds;

void bt_alarm_start(uint32_t ms)
{
    rounds = ms / ROUND_MS + 1u;
    RVR = BT_ALARM_PER_MS * ROUND_MS - 1u;
    CVR = 0; /* begin with a whole round */
    CSR = CSR_ENABLE_CORE_CLOCK;
}

/* Reading CSR would lose the flag. A round that ends in between is missed, the next one is not. */
void bt_alarm_wakes(int on)
{
    CSR = on ? CSR_ENABLE_CORE_CLOCK | CSR_TICKINT : CSR_ENABLE_CORE_CLOCK;
    if (!on) {
        ICSR = ICSR_PENDSTCLR;
    }
}

int bt_alarm_rang(void)
{
    if ((CSR & CSR_COUNTFLAG) != 0) {
        rounds--;
    }
    return rounds == 0;
}

void bt_alarm_stop(void)
{
    CSR = 0;
}
