/* mtime and mtimecmp, at addresses that the including file defines. */
#ifndef BT_MTIME_H
#define BT_MTIME_H

#define MIE_MTIE (1u << 7)

static uint64_t rings; /* when */

static uint64_t now(void)
{
    uint32_t high, low;
    do {
        high = MTIMEH;
        low = MTIME;
    } while (high != MTIMEH);
    return (uint64_t)high << 32 | low;
}

void bt_alarm_start(uint32_t ms)
{
    MTIME_START();
    rings = now() + BT_ALARM_PER_MS * ms;
    MTIMECMPH = 0xffffffffu; /* not too early on the way */
    MTIMECMP = (uint32_t)rings;
    MTIMECMPH = (uint32_t)(rings >> 32);
}

void bt_alarm_wakes(int on)
{
    if (on) {
        __asm__ volatile("csrs mie, %0" : : "r"(MIE_MTIE));
    } else {
        __asm__ volatile("csrc mie, %0" : : "r"(MIE_MTIE));
    }
}

int bt_alarm_rang(void)
{
    return now() >= rings;
}

void bt_alarm_stop(void)
{
}

#endif
