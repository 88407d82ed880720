/* Interrupts, as far as sleeping needs them: lines that devices raise, and the NVIC, where a raised line stays pending
 * until it is cleared. Only that of USB is taken, see machines/unicorn/exceptions.py. */
#include "unicorn.h"

enum { SET_ENABLED = 0x000, CLEAR_ENABLED = 0x080, SET_PENDING = 0x100, CLEAR_PENDING = 0x180 };

static uint32_t input_waits(const bt_chip *m)
{
    return m->input_taken < m->input_bytes && m->console & RECEIVES;
}

/* What the devices do to their lines now. */
static void drive(bt_chip *m)
{
    if (m->irq == NO_IRQ)
        return;
    const uint32_t bit = 1u << m->irq % 32;
    uint32_t *line = &m->lines[m->irq / 32];
    if (m->sticky[1])
        m->stuck |= m->wakes && input_waits(m);
    *line = m->wakes && (m->sticky[1] ? m->stuck : input_waits(m)) ? *line | bit : *line & ~bit;
}

void look_at_lines(bt_core *c)
{
    drive(c->chip);
    look_at_alarm(c);
    for (uint32_t i = 0; i < IRQ_WORDS; i++)
        c->pending[i] |= c->chip->lines[i];
}

/* The console's own registers that have to do with its interrupt; they may belong to the model as well. */
void tell_console(bt_core *c, uint32_t address, uint32_t value)
{
    bt_chip *m = c->chip;
    if (!(m->console & ANSWERS))
        return;
    if (address == m->wake[0])
        m->wakes = (value & m->wake[1]) == m->wake[1];
    if (address == m->sticky[0] && value & m->sticky[1])
        m->stuck = 0;
    look_at_lines(c);
}

uint32_t read_nvic(bt_core *c, uint32_t offset)
{
    const uint32_t word = offset % 0x80 / 4;
    look_at_lines(c);
    if (word >= IRQ_WORDS)
        return 0;
    return offset < SET_PENDING ? c->enabled[word] : c->pending[word];
}

void write_nvic(bt_core *c, uint32_t offset, uint32_t value)
{
    const uint32_t word = offset % 0x80 / 4;
    if (word >= IRQ_WORDS)
        return;
    switch (offset - offset % 0x80) {
    case SET_ENABLED:
        c->enabled[word] |= value;
        break;
    case CLEAR_ENABLED:
        c->enabled[word] &= ~value;
        break;
    case SET_PENDING:
        c->pending[word] |= value;
        break;
    default:
        c->pending[word] &= ~value;
        look_at_lines(c);
    }
}

static uint32_t is_interrupted(bt_core *c)
{
    look_at_lines(c);
    for (uint32_t i = 0; i < IRQ_WORDS; i++)
        if (c->enabled[i] & c->pending[i])
            return 1;
    return c->alarm.pending;
}

static int input_would_wake(const bt_core *c)
{
    const bt_chip *m = c->chip;
    return m->irq != NO_IRQ && m->wakes && m->console & RECEIVES && c->enabled[m->irq / 32] >> m->irq % 32 & 1;
}

/* WFI: returns the state of the core. Time passes to the next alarm, but not while there is output. */
uint32_t bt_doze(bt_core *c)
{
    bt_chip *m = c->chip;
    if (is_interrupted(c))
        return c->dozing = AWAKE;
    m->polls = 0;
    if (m->taken_irq != NO_IRQ && c->enabled[m->taken_irq / 32] >> m->taken_irq % 32 & 1)
        return c->dozing = UNTIL_INPUT; /* it may be raised before an alarm rings */
    const uint64_t rings = c->alarm.wakes ? c->alarm.due : NEVER;
    const uint64_t next = rings < m->watchdog.due ? rings : m->watchdog.due;
    if (input_would_wake(c) && (m->output_bytes || next > m->idle_until))
        return c->dozing = UNTIL_INPUT;
    if (next == NEVER)
        return c->dozing = FOR_EVER;
    wait_until(c, next);
    return c->dozing = next == rings && is_interrupted(c) ? AWAKE : UNTIL_BITTEN;
}
