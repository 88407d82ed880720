/* Timers that can end sleep: SysTick of the core, and a comparator of the nRF51's timer. */
#include "unicorn.h"

#define ICSR 0xe000ed04u
#define ICSR_PENDSTCLR (1u << 25)

enum { CSR = 0x0, RVR = 0x4, CVR = 0x8 };
enum { CAPTURE1 = 0x044, COMPARE1 = 0x144, INTENSET = 0x304, INTENCLR = 0x308, CC1 = 0x544 };
enum { INT_COMPARE1 = 1 << 17 };

/* What has happened until now. */
void look_at_alarm(bt_core *c)
{
    bt_chip *m = c->chip;
    bt_alarm *a = &c->alarm;
    while (clock_of(c) >= a->due) {
        a->rang = 1;
        a->pending |= m->alarm == SYSTICK && a->wakes;
        a->due = m->alarm == SYSTICK && a->reload ? a->due + a->reload + 1 : NEVER;
    }
    if (m->alarm == NRF_TIMER) {
        const uint32_t bit = 1u << m->alarm_irq % 32;
        uint32_t *line = &m->lines[m->alarm_irq / 32];
        *line = a->wakes && a->rang ? *line | bit : *line & ~bit;
    }
}

static void begin_round(bt_core *c)
{
    c->alarm.due = c->alarm.on && c->alarm.reload ? clock_of(c) + c->alarm.reload + 1 : NEVER;
}

static void write_systick(bt_core *c, uint32_t offset, uint32_t value)
{
    bt_alarm *a = &c->alarm;
    const uint32_t was_on = a->on;
    switch (offset) {
    case CSR:
        a->on = value & 1;
        a->wakes = value >> 1 & 1;
        if (a->on != was_on)
            begin_round(c);
        break;
    case RVR:
        a->reload = value & 0xffffff;
        break;
    case CVR:
        a->rang = 0;
        begin_round(c);
        break;
    default:
        break;
    }
}

static void write_nrf_timer(bt_core *c, uint32_t offset, uint32_t value)
{
    bt_alarm *a = &c->alarm;
    const double rate = c->chip->ticks_per_instruction;
    switch (offset) {
    case CAPTURE1:
        a->reload = ticks(c);
        break;
    case CC1:
        a->reload = value;
        a->due = rate > 0 ? clock_of(c) + (uint64_t)((value - ticks(c)) / rate) : NEVER;
        break;
    case COMPARE1:
        a->rang = 0;
        break;
    case INTENSET:
    case INTENCLR:
        if (value & INT_COMPARE1)
            a->wakes = offset == INTENSET;
        break;
    default:
        break;
    }
}

void tell_alarm(bt_core *c, uint32_t address, uint32_t value)
{
    const bt_chip *m = c->chip;
    look_at_alarm(c);
    if (m->alarm == SYSTICK && address == ICSR && value & ICSR_PENDSTCLR)
        c->alarm.pending = 0;
    else if (m->alarm == SYSTICK)
        write_systick(c, address - m->alarm_base, value);
    else if (m->alarm == NRF_TIMER)
        write_nrf_timer(c, address - m->alarm_base, value);
}

/* True if the register is one of these; then `value` is what it reads as. */
int ask_alarm(bt_core *c, uint32_t address, uint32_t *value)
{
    const bt_chip *m = c->chip;
    bt_alarm *a = &c->alarm;
    const uint32_t offset = address - m->alarm_base;
    if (m->alarm == SYSTICK && offset == CSR) {
        *value = a->on | a->wakes << 1 | 1u << 2 | a->rang << 16;
        a->rang = 0;
        return 1;
    }
    if (m->alarm == NRF_TIMER && (offset == CC1 || offset == COMPARE1)) {
        *value = offset == CC1 ? a->reload : a->rang;
        return 1;
    }
    return 0;
}
