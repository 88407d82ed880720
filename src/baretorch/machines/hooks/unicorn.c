/* The inner loop of the Unicorn machine, on the host: counts instructions.
 *
 * Unicorn calls bt_on_block before every basic block. Python runs one core at a time, and reads the counts whenever
 * emulation stops.
 *
 * Counting by blocks is exact: the run function is entered by a call and left by a return, both of which end a block.
 * An instruction in an IT block counts whether its condition holds or not, as in QEMU: it takes its cycle either way.
 */
#include "unicorn.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define NO_CODE 0xffffffffu

/* The number of the block that starts at an address: of flash first, then of RAM. */
static uint32_t index_of(const bt_chip *m, uint32_t pc)
{
    if (pc - m->code_origin < m->code_bytes)
        return (pc - m->code_origin) / 2;
    return pc - m->ram_code_origin < m->ram_code_bytes ? (m->code_bytes + 1 + pc - m->ram_code_origin) / 2 : NO_CODE;
}

static uint32_t address_of(const bt_chip *m, uint32_t index)
{
    const uint32_t first = (m->code_bytes + 1) / 2; /* of RAM */
    return index < first ? m->code_origin + 2 * index : m->ram_code_origin + 2 * (index - first);
}

static uint32_t instruction_bytes(const bt_chip *m, void *unicorn, uint32_t pc)
{
    uint16_t opcode = 0;
    if (pc - m->code_origin < m->code_bytes)
        opcode = m->code[(pc - m->code_origin) / 2];
    else
        m->peek(unicorn, pc, &opcode, sizeof opcode);
    return opcode >> 11 >= 0x1d ? 4 : 2;
}

static uint32_t instructions_in(const bt_chip *m, void *unicorn, uint32_t pc, uint32_t bytes)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < bytes; at += instruction_bytes(m, unicorn, pc + at))
        n++;
    return n;
}

/* Make rows of what was counted. */
static void write_rows(bt_core *c)
{
    if (c->chip->flash != NULL)
        write_visit(c);
    for (uint32_t i = 0; i < c->touched_count; i++) {
        bt_block *b = &c->blocks[c->touched[i]];
        if (c->row_count < c->chip->row_room)
            c->rows[c->row_count] = (bt_row){ b->executed, b->taken, c->site,
                                              address_of(c->chip, c->touched[i]), b->instructions, 0 };
        c->row_count++;
        b->executed = b->taken = 0;
    }
    c->touched_count = 0;
}

static void begin_call(bt_core *c)
{
    c->running = 1;
    c->entered[0] = own_instructions(c);
    c->entered[1] = c->met;
    c->entered[2] = clock_of(c) - c->handled;
    c->row_count = 0;
    if (c->chip->flash != NULL)
        begin_visits(c);
    c->at_home = c->number == 0;
    c->site = 0;
    c->last = NULL;
}

static void end_call(bt_core *c)
{
    c->running = 0;
    c->taken[0] = own_instructions(c) - c->entered[0];
    c->taken[1] = c->met - c->entered[1];
    write_rows(c);
}

/* Core 0 enters the run function. */
static void begin_calls(bt_core *c)
{
    begin_call(c);
    c->chip->first_phase = c->phase;
    c->chip->watching = c->other != NULL;
    if (c->other != NULL)
        begin_call(c->other);
}

/* Core 0 is back from it. What core 1 has still to do until it waits again is part of the call, so it gets its turn
 * once: true if emulation must stop for that, to come here again. */
static int end_calls(bt_core *c, void *unicorn)
{
    bt_chip *m = c->chip;
    if (c->running) {
        end_call(c);
        m->calls[m->call_count++ % m->call_room] = clock_of(c) - c->handled - c->entered[2];
        m->watching = 0;
        m->closing = c->other != NULL;
        if (can_run(c->other)) {
            stop(m, unicorn, OTHERS_TURN);
            return 1;
        }
    }
    if (m->closing) {
        m->closing = 0;
        end_call(c->other);
    }
    return 0;
}

static uint32_t is_home(const bt_core *c, uint32_t pc)
{
    return (pc >= c->home[0] && pc < c->home[1]) || (pc >= c->home[2] && pc < c->home[3]);
}

/* Control has come to pc: by a jump, a call or a return, or because the block before it ends there. */
static void arrive(bt_core *c, uint32_t pc)
{
    uint32_t at_home = is_home(c, pc);
    if (c->last != NULL)
        c->last->taken += pc != c->last_end;
    if (at_home != c->at_home) {
        write_rows(c);
        c->at_home = at_home;
        c->site = at_home ? 0 : c->last_end;
    }
}

static uint32_t count(bt_core *c, void *unicorn, uint32_t pc, uint32_t bytes)
{
    const bt_chip *m = c->chip;
    uint32_t index = index_of(m, pc);
    c->last = NULL;
    c->last_end = pc + bytes;
    if (index == NO_CODE)
        return instructions_in(m, unicorn, pc, bytes);
    bt_block *b = &c->blocks[index];
    if (b->bytes != bytes) {
        if (b->executed)
            write_rows(c);
        b->bytes = bytes;
        b->instructions = instructions_in(m, unicorn, pc, bytes);
    }
    if (c->running) {
        c->last = b;
        if (b->executed++ == 0)
            c->touched[c->touched_count++] = index;
    }
    return b->instructions;
}

/* True if emulation stops before this block, to come back to it. */
static int turn_ends(bt_core *c, void *unicorn)
{
    if (c->instructions < c->next_look)
        return 0;
    c->next_look = c->instructions + c->chip->turn;
    if (clock_of(c) >= c->chip->watchdog.due)
        stop(c->chip, unicorn, WATCHDOG_BITES);
    else if (now() > c->chip->deadline)
        stop(c->chip, unicorn, TIME_IS_UP);
    else if (can_run(c->other))
        stop(c->chip, unicorn, OTHERS_TURN);
    else if (c->chip->usb != NULL && c->number == 0)
        stop(c->chip, unicorn, BUS_TURN);
    else
        return 0;
    return 1;
}

/* True if emulation stops before this block, for an interrupt that is taken unless the core has masked it. */
static int is_interrupted(bt_core *c, void *unicorn)
{
    if (!is_due(c))
        return 0;
    if (c->masked) {
        c->masked = 0;
        return 0;
    }
    stop(c->chip, unicorn, INTERRUPTED);
    return 1;
}

void bt_on_block(void *unicorn, uint64_t address, uint32_t bytes, void *core)
{
    bt_core *c = core;
    const bt_chip *m = c->chip;
    uint32_t pc = (uint32_t)address;
    if (turn_ends(c, unicorn) || is_interrupted(c, unicorn))
        return;
    if (c->handling) {
        const uint32_t taken = instructions_in(m, unicorn, pc, bytes);
        c->instructions += taken;
        c->handled += taken;
        if (m->flash != NULL)
            fetch(c, pc, bytes);
        return;
    }
    if (c->running)
        arrive(c, pc);
    if (pc == m->run && !c->running && c->number == 0)
        begin_calls(c);
    else if (pc == m->returned && c->number == 0 && end_calls(c, unicorn))
        return;
    if (c->other != NULL)
        look_for_meeting(c, pc);
    uint32_t n = count(c, unicorn, pc, bytes);
    c->instructions += n;
    if (c->meeting)
        c->met += n;
    if (m->flash != NULL)
        fetch(c, pc, bytes);
}
