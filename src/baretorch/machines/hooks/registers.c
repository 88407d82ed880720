/* The registers of the chip: Unicorn calls bt_on_read and bt_on_write for every access to register space. */
#include "unicorn.h"

#define NVIC 0xe000e100u
#define NVIC_BYTES 0x200u

static const bt_register *find(const bt_chip *m, uint32_t address)
{
    for (uint32_t i = 0; i < m->register_count; i++)
        if (m->registers[i].address == address)
            return &m->registers[i];
    return NULL;
}

static uint32_t dead_console(bt_chip *m, void *unicorn)
{
    enum { ENOUGH = 1000 };
    if (++m->polls > ENOUGH)
        stop(m, unicorn, CONSOLE_IS_DEAD);
    return 0;
}

static uint32_t console_status(bt_chip *m, void *unicorn, const bt_register *r)
{
    if (!(m->console & ANSWERS))
        return dead_console(m, unicorn);
    if (m->input_taken < m->input_bytes && m->console & RECEIVES)
        return r->filled;
    /* Senders read the same register, but once per byte, and a core that sleeps can be woken once by a byte that it has
     * already taken. Code that reads it more often waits for input. */
    enum { OFTEN = 4 };
    if (++m->polls > OFTEN)
        stop(m, unicorn, WAITS_FOR_INPUT);
    return r->empty;
}

static uint32_t console_data(bt_chip *m, void *unicorn)
{
    if (!(m->console & ANSWERS))
        return dead_console(m, unicorn);
    return m->input_taken < m->input_bytes && m->console & RECEIVES ? m->line[m->input[m->input_taken++]] : 0;
}

uint32_t ticks(const bt_core *c)
{
    const bt_chip *m = c->chip;
    const uint64_t clock = clock_of(c);
    const uint64_t passed = clock > m->counting_from ? clock - m->counting_from : 0;
    return (uint32_t)(uint64_t)(m->first_tick + (double)passed * m->ticks_per_instruction);
}

static void change(bt_core *c, void *unicorn, uint32_t address, uint32_t value, uint32_t why)
{
    if (c->chip->change(address, value, why, clock_of(c)))
        stop(c->chip, unicorn, CHIP_CHANGED);
}

static int is_nvic(uint32_t address)
{
    return address - NVIC < NVIC_BYTES;
}

static int is_dma(const bt_chip *m, uint32_t address)
{
    enum { CHANNEL = 0x10, STREAM = 0x8 };
    return m->dma != NULL && (address - m->dma_base[0] < CHANNEL || address - m->dma_base[1] < STREAM);
}

static uint64_t read_register(bt_core *c, void *unicorn, uint32_t address)
{
    bt_chip *m = c->chip;
    look_at_lines(c);
    if (is_nvic(address))
        return read_nvic(c, address - NVIC);
    if (is_dma(m, address))
        return m->dma(address, 0, READ, clock_of(c));
    uint32_t value;
    if (ask_alarm(c, address, &value) || ask_watchdog(c, address, &value))
        return value;
    if (clock_of(c) >= m->next_change)
        change(c, unicorn, 0, 0, DUE);
    const bt_register *r = find(m, address);
    if (r == NULL)
        return 0;
    switch (r->kind) {
    case CONSOLE_STATUS:
        return console_status(m, unicorn, r);
    case CONSOLE_DATA:
        return console_data(m, unicorn);
    case COUNTER:
        return ticks(c) ^ r->filled;
    case READ_BACK:
        change(c, unicorn, address, 0, READ);
        return m->values[r->filled];
    case MODELLED:
        return m->values[r->filled];
    case CORE_NUMBER:
        return c->number;
    case MAIL_STATUS:
        return mail_status(c);
    case MAIL_TAKE:
        return bt_take_mail(c);
    case KEPT:
        return c->kept[r->filled];
    default:
        return r->filled;
    }
}

static void send_byte(bt_chip *m, void *unicorn, uint8_t byte)
{
    m->polls = 0;
    if (!(m->console & TRANSMITS))
        return;
    m->output[m->output_bytes++] = m->line[byte];
    if (m->output_bytes >= m->output_room / 2) /* a stop takes effect at the end of a basic block */
        stop(m, unicorn, OUTPUT_IS_FULL);
}

static void write_register(bt_core *c, void *unicorn, uint32_t address, uint64_t value)
{
    if (clock_of(c) >= c->chip->next_change)
        change(c, unicorn, 0, 0, DUE);
    if (is_nvic(address))
        write_nvic(c, address - NVIC, (uint32_t)value);
    else
        tell_console(c, address, (uint32_t)value);
    tell_alarm(c, address, (uint32_t)value);
    tell_watchdog(c, address, (uint32_t)value);
    if (is_dma(c->chip, address) && c->chip->dma(address, (uint32_t)value, WRITTEN, clock_of(c)))
        stop(c->chip, unicorn, CHIP_CHANGED);
    const bt_register *r = find(c->chip, address);
    if (r == NULL)
        return;
    if (r->kind == MODELLED || r->kind == READ_BACK)
        change(c, unicorn, address, (uint32_t)value, WRITTEN);
    else if (r->kind == CONSOLE_DATA)
        send_byte(c->chip, unicorn, (uint8_t)value);
    else if (r->kind == MAIL_SEND)
        bt_send_mail(c, (uint32_t)value);
    else if (r->kind == KEPT)
        c->kept[r->filled] = (uint32_t)value;
}

uint64_t bt_on_read(void *unicorn, uint64_t offset, unsigned size, void *range)
{
    const bt_range *r = range;
    (void)size;
    return read_register(r->core, unicorn, (uint32_t)(r->origin + offset));
}

void bt_on_write(void *unicorn, uint64_t offset, unsigned size, uint64_t value, void *range)
{
    const bt_range *r = range;
    (void)size;
    write_register(r->core, unicorn, (uint32_t)(r->origin + offset), value);
}
