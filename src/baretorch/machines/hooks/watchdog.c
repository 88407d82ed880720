/* Watchdogs: those of the RP2040 and RP2350, of STM32s, and of the nRF51. */
#include "unicorn.h"

enum { RP_CTRL = 0x0, RP_LOAD = 0x4, RP_SCRATCH4 = 0x1c };
enum { IWDG_KR = 0x0, IWDG_PR = 0x4, IWDG_RLR = 0x8 };
enum { NRF_START = 0x000, NRF_CRV = 0x504, NRF_RREN = 0x508, NRF_RR0 = 0x600 };

static void feed(bt_core *c)
{
    bt_watchdog *w = &c->chip->watchdog;
    w->due = w->on ? clock_of(c) + (uint64_t)(w->count * w->instructions_per_count) : NEVER;
}

static void write_rp(bt_core *c, uint32_t offset, uint32_t value)
{
    bt_watchdog *w = &c->chip->watchdog;
    if (offset == RP_SCRATCH4)
        w->scratch = value;
    if (offset == RP_CTRL)
        w->on = value >> 30 & w->selects;
    else if (offset == RP_LOAD)
        w->count = value & 0xffffff;
    else
        return;
    feed(c);
}

static void write_iwdg(bt_core *c, uint32_t offset, uint32_t value)
{
    bt_watchdog *w = &c->chip->watchdog;
    if (offset == IWDG_KR) {
        w->open = value == 0x5555;
        if (value == 0xcccc)
            w->on = 1;
        if (value == 0xcccc || value == 0xaaaa)
            feed(c);
    } else if (w->open && offset == IWDG_PR) {
        w->selects = value == 6; /* the divider of its configured rate */
    } else if (w->open && offset == IWDG_RLR) {
        w->count = w->selects ? value & 0xfff : 0;
    }
}

static void write_nrf(bt_core *c, uint32_t offset, uint32_t value)
{
    bt_watchdog *w = &c->chip->watchdog;
    if (offset == NRF_CRV && !w->on)
        w->count = value;
    else if (offset == NRF_RREN && !w->on)
        w->selects = value & 1;
    else if (offset == NRF_START)
        w->on = 1;
    if (offset == NRF_START || (offset == NRF_RR0 && value == 0x6e524635 && w->selects))
        feed(c);
}

void tell_watchdog(bt_core *c, uint32_t address, uint32_t value)
{
    bt_watchdog *w = &c->chip->watchdog;
    const uint32_t offset = address - w->base;
    if (address == w->cause[0] && value & w->cause[2])
        w->bit = 0;
    switch (w->kind) {
    case RP:
        if (address == w->select[0])
            w->selects = (value & w->select[1]) == w->select[1];
        write_rp(c, offset, value);
        break;
    case IWDG:
        write_iwdg(c, offset, value);
        break;
    case NRF_WDT:
        write_nrf(c, offset, value);
        break;
    default:
        break;
    }
}

/* True if the register has the reason of the last start, or is kept over a restart. */
int ask_watchdog(const bt_core *c, uint32_t address, uint32_t *value)
{
    const bt_watchdog *w = &c->chip->watchdog;
    if (w->kind == RP && address == w->base + RP_SCRATCH4) {
        *value = w->scratch;
        return 1;
    }
    if (w->kind == NO_WATCHDOG || address != w->cause[0])
        return 0;
    *value = w->bit ? w->cause[1] : 0;
    return 1;
}
