/* The inner loop of the Unicorn machine, on the host: counts instructions and plays the chip's registers.
 *
 * Unicorn calls bt_on_block before every basic block, and bt_on_read and bt_on_write for every access to register
 * space. Python fills in a bt_chip and a bt_core for each core (state.py mirrors their fields), lets one core at a time
 * run, and looks at them whenever emulation stops.
 *
 * Counting by blocks is exact: the run function is entered by a call and left by a return, both of which end a block.
 * An instruction in an IT block counts whether its condition holds or not, as in QEMU: it takes its cycle either way.
 *
 * In images that use two cores, each has a clock: its instructions, and what it has waited. A core runs until it waits,
 * however far ahead of the other that is, so clocks are set where cores meet (bt_meet of kernels/cores.h): nobody
 * leaves a meeting before the other has come. Between meetings cores do not share what one of them writes, or that is
 * the error which bt_on_touch finds.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { CONSTANT, CONSOLE_STATUS, CONSOLE_DATA, COUNTER, CORE_NUMBER, MAIL_STATUS, MAIL_SEND, MAIL_TAKE, KEPT };
enum { NOT_STOPPED, WAITS_FOR_INPUT, OUTPUT_IS_FULL, TIME_IS_UP, OTHERS_TURN, RACE };

#define MAIL_ROOM 4u /* words; the RP2040 has room for eight */
#define MAIL_VALID 1u
#define MAIL_READY 2u
#define KEPT_ROOM 2
#define MEETINGS 4
#define TURN 0x10000 /* instructions, after which the other core gets its turn if it can run, and the clock a look */

/* A register that does more than read as zero. */
typedef struct {
    uint32_t address;
    uint32_t kind;
    uint32_t empty;  /* CONSOLE_STATUS: its value while no input is there */
    uint32_t filled; /* CONSOLE_STATUS: while some is; CONSTANT: always; COUNTER: the bits that read inverted;
                        KEPT: which of a core's kept registers it is */
} bt_register;

/* The basic block that starts at a halfword of code; what was counted for it since it last became a row. */
typedef struct {
    uint64_t executed;
    uint64_t taken; /* how often something else followed than the next instruction */
    uint32_t bytes;
    uint32_t instructions;
} bt_block;

/* A basic block of a call of the run function. `site` is 0 in the run function itself, and in all that it calls the
 * address behind the call. */
typedef struct {
    uint64_t executed, taken;
    uint32_t site, address, instructions, unused;
} bt_row;

/* Who touched a byte: a core's phase, block and site. A phase is a number of meetings entered, 1 for none yet. */
typedef struct {
    uint32_t phase, pc, site;
} bt_access;

/* What each core did to a byte of RAM last. */
typedef struct {
    bt_access read[2], wrote[2];
} bt_byte;

/* The first byte that both cores touched in one phase. */
typedef struct {
    uint32_t found, address, phase;
    uint32_t writes[2]; /* which of the cores did */
    bt_access by[2];
} bt_race;

typedef struct bt_core bt_core;

/* What the cores share. */
typedef struct {
    int (*stop)(void *unicorn);
    int (*peek)(void *unicorn, uint64_t address, void *bytes, size_t size);
    int (*read_register)(void *unicorn, int number, void *value);
    const bt_register *registers;
    const uint16_t *code;
    const uint8_t *input;
    uint8_t *output;
    uint64_t *calls; /* a ring: instructions of each call of the run function; of two cores, core 0's clock */
    double deadline; /* in seconds of the monotonic clock */
    double ticks_per_instruction;
    uint64_t call_count;
    uint32_t register_count;
    uint32_t input_bytes, input_taken;
    uint32_t output_bytes, output_room;
    uint32_t call_room, row_room;
    uint32_t code_origin, code_bytes;
    uint32_t run, returned; /* addresses: the run function, and where it returns to */
    uint32_t polls;         /* reads of the console's status in a row that found no input */
    uint32_t stopped;
    uint32_t r0;                   /* Unicorn's number of that register */
    uint32_t meets[2 * MEETINGS];  /* ranges of addresses: the functions bt_meet */
    uint32_t stacks[2];            /* a range of addresses */
    uint32_t meetings[MEETINGS];   /* addresses of what bt_meet was called with */
    uint32_t meeting_count;
    uint32_t first_phase; /* of the call */
    uint32_t watching;    /* for races: while the run function runs */
    uint32_t closing;     /* it has returned, and what core 1 did is not yet settled */
    bt_race race;
} bt_chip;

struct bt_core {
    bt_chip *chip;
    bt_core *other;    /* NULL: there is none */
    bt_block *blocks;  /* one for each halfword of code */
    uint32_t *touched; /* halfwords whose blocks have been counted for */
    bt_row *rows;      /* of the last call */
    bt_block *last;    /* block that ran */
    uint64_t instructions; /* since reset */
    uint64_t idle;         /* what the clock has gone on without instructions */
    uint64_t met;          /* instructions inside of bt_meet */
    uint64_t entered[3];   /* instructions, met and clock when the run function was entered */
    uint64_t taken[2];     /* instructions and met of the last call */
    uint64_t event_clock;  /* of the latest event */
    uint64_t signalled[2]; /* the clock when it came to the last two meetings */
    uint64_t next_look;    /* at the clock, and for the other core */
    uint64_t row_count;    /* those that found no room included */
    uint32_t signalled_phase[2];
    uint32_t number;
    uint32_t home[4];       /* two ranges of addresses: the run function and the part of it that calls the layers */
    uint32_t running;       /* between run and returned */
    uint32_t at_home, site; /* of the last block */
    uint32_t last_end;
    uint32_t touched_count;
    uint32_t phase; /* how often it has entered bt_meet */
    uint32_t meeting; /* whether it is inside */
    uint32_t pc;      /* of the last block */
    uint32_t event, asleep, halted;
    uint32_t mail[MAIL_ROOM], mail_count; /* words that the other core sent */
    uint32_t kept[KEPT_ROOM];
};

static void stop(bt_chip *m, void *unicorn, uint32_t why)
{
    m->stopped = why;
    m->stop(unicorn);
}

static uint64_t clock_of(const bt_core *c)
{
    return c->instructions + c->idle;
}

static void wait_until(bt_core *c, uint64_t clock)
{
    if (clock_of(c) < clock)
        c->idle = clock - c->instructions;
}

static int can_run(const bt_core *c)
{
    return c != NULL && !c->halted && (!c->asleep || c->event);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
    for (uint32_t i = 0; i < c->touched_count; i++) {
        bt_block *b = &c->blocks[c->touched[i]];
        if (c->row_count < c->chip->row_room)
            c->rows[c->row_count] = (bt_row){ b->executed, b->taken, c->site,
                                              c->chip->code_origin + 2 * c->touched[i], b->instructions, 0 };
        c->row_count++;
        b->executed = b->taken = 0;
    }
    c->touched_count = 0;
}

static void begin_call(bt_core *c)
{
    c->running = 1;
    c->entered[0] = c->instructions;
    c->entered[1] = c->met;
    c->entered[2] = clock_of(c);
    c->row_count = 0;
    c->at_home = c->number == 0;
    c->site = 0;
    c->last = NULL;
}

static void end_call(bt_core *c)
{
    c->running = 0;
    c->taken[0] = c->instructions - c->entered[0];
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
        m->calls[m->call_count++ % m->call_room] = clock_of(c) - c->entered[2];
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
    uint32_t index = (pc - m->code_origin) / 2;
    c->last = NULL;
    c->last_end = pc + bytes;
    if (pc - m->code_origin >= m->code_bytes)
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

/* Notes whether the core is inside of bt_meet, and which meetings there are. */
static void look_for_meeting(bt_core *c, void *unicorn, uint32_t pc)
{
    bt_chip *m = c->chip;
    c->pc = pc;
    c->meeting = 0;
    for (uint32_t i = 0; i < 2 * MEETINGS && m->meets[i + 1] != 0; i += 2) {
        if (pc < m->meets[i] || pc >= m->meets[i + 1])
            continue;
        c->meeting = 1;
        if (pc != m->meets[i])
            continue;
        uint32_t address = 0, known = 0;
        c->phase++;
        m->read_register(unicorn, (int)m->r0, &address);
        for (uint32_t k = 0; k < m->meeting_count; k++)
            known |= m->meetings[k] == address;
        if (!known && m->meeting_count < MEETINGS)
            m->meetings[m->meeting_count++] = address;
    }
}

/* In a meeting to which the other core has come as well: it is not left before that. */
static void catch_up(bt_core *c)
{
    const uint32_t slot = c->phase & 1;
    if (c->other->signalled_phase[slot] == c->phase)
        wait_until(c, c->other->signalled[slot]);
}

/* SEV: an event for all cores. */
void bt_signal(bt_core *c)
{
    const uint32_t slot = c->phase & 1;
    if (c->meeting && c->signalled_phase[slot] != c->phase) {
        c->signalled_phase[slot] = c->phase;
        c->signalled[slot] = clock_of(c);
        catch_up(c);
    }
    if (c->other->event_clock < clock_of(c))
        c->other->event_clock = clock_of(c);
    c->event = c->other->event = 1;
}

/* WFE: true if there has been an event; else the core sleeps until there is. */
int bt_wait(bt_core *c)
{
    c->asleep = !c->event;
    c->event = 0;
    if (!c->asleep && c->meeting)
        catch_up(c);
    else if (!c->asleep)
        wait_until(c, c->event_clock);
    return !c->asleep;
}

void bt_on_signal(void *unicorn, uint64_t address, uint32_t bytes, void *core)
{
    (void)unicorn;
    (void)address;
    (void)bytes;
    bt_signal(core);
}

/* True if emulation stops before this block, to come back to it. */
static int turn_ends(bt_core *c, void *unicorn)
{
    if (c->instructions < c->next_look)
        return 0;
    c->next_look = c->instructions + TURN;
    if (now() > c->chip->deadline)
        stop(c->chip, unicorn, TIME_IS_UP);
    else if (can_run(c->other))
        stop(c->chip, unicorn, OTHERS_TURN);
    else
        return 0;
    return 1;
}

void bt_on_block(void *unicorn, uint64_t address, uint32_t bytes, void *core)
{
    bt_core *c = core;
    const bt_chip *m = c->chip;
    uint32_t pc = (uint32_t)address;
    if (turn_ends(c, unicorn))
        return;
    if (c->running)
        arrive(c, pc);
    if (pc == m->run && !c->running && c->number == 0)
        begin_calls(c);
    else if (pc == m->returned && c->number == 0 && end_calls(c, unicorn))
        return;
    if (c->other != NULL)
        look_for_meeting(c, unicorn, pc);
    uint32_t n = count(c, unicorn, pc, bytes);
    c->instructions += n;
    if (c->meeting)
        c->met += n;
}

static const bt_register *find(const bt_chip *m, uint32_t address)
{
    for (uint32_t i = 0; i < m->register_count; i++)
        if (m->registers[i].address == address)
            return &m->registers[i];
    return NULL;
}

static uint32_t console_status(bt_chip *m, void *unicorn, const bt_register *r)
{
    if (m->input_taken < m->input_bytes)
        return r->filled;
    /* Senders look at the same register, but once per byte: the second look in a row waits for input. */
    if (++m->polls > 1)
        stop(m, unicorn, WAITS_FOR_INPUT);
    return r->empty;
}

static uint32_t mail_status(const bt_core *c)
{
    return (c->mail_count ? MAIL_VALID : 0) | (c->other->mail_count < MAIL_ROOM ? MAIL_READY : 0);
}

uint32_t bt_take_mail(bt_core *c)
{
    if (c->mail_count == 0)
        return 0;
    const uint32_t word = c->mail[0];
    memmove(c->mail, c->mail + 1, --c->mail_count * sizeof word);
    return word;
}

void bt_send_mail(const bt_core *c, uint32_t word)
{
    if (c->other->mail_count < MAIL_ROOM)
        c->other->mail[c->other->mail_count++] = word;
}

static uint64_t read_register(bt_core *c, void *unicorn, uint32_t address)
{
    bt_chip *m = c->chip;
    const bt_register *r = find(m, address);
    if (r == NULL)
        return 0;
    switch (r->kind) {
    case CONSOLE_STATUS:
        return console_status(m, unicorn, r);
    case CONSOLE_DATA:
        return m->input_taken < m->input_bytes ? m->input[m->input_taken++] : 0;
    case COUNTER:
        return (uint32_t)(uint64_t)((double)clock_of(c) * m->ticks_per_instruction) ^ r->filled;
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
    m->output[m->output_bytes++] = byte;
    if (m->output_bytes >= m->output_room / 2) /* a stop takes effect at the end of a basic block */
        stop(m, unicorn, OUTPUT_IS_FULL);
}

static void write_register(bt_core *c, void *unicorn, uint32_t address, uint64_t value)
{
    const bt_register *r = find(c->chip, address);
    if (r == NULL)
        return;
    if (r->kind == CONSOLE_DATA)
        send_byte(c->chip, unicorn, (uint8_t)value);
    else if (r->kind == MAIL_SEND)
        bt_send_mail(c, (uint32_t)value);
    else if (r->kind == KEPT)
        c->kept[r->filled] = (uint32_t)value;
}

/* Unicorn gives offsets into the mapped range: each range has a bt_range that tells where it starts. */
typedef struct {
    bt_core *core;
    uint64_t origin;
} bt_range;

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

/* A bank of RAM as one core sees it; its bytes are shared. */
typedef struct {
    bt_core *core;
    bt_byte *bytes;
    uint64_t origin;
} bt_bank;

/* Stacks are a core's own, and meetings are made to be shared. */
static int is_watched(const bt_core *c, uint32_t address)
{
    const bt_chip *m = c->chip;
    if (!m->watching || c->meeting || m->race.found || (address >= m->stacks[0] && address < m->stacks[1]))
        return 0;
    for (uint32_t k = 0; k < m->meeting_count; k++)
        if (address - m->meetings[k] < 8)
            return 0;
    return 1;
}

void bt_on_touch(void *unicorn, int kind, uint64_t address, int size, int64_t value, void *bank)
{
    enum { UNICORN_WRITES = 17 };
    const bt_bank *b = bank;
    const bt_core *c = b->core;
    bt_race *race = &c->chip->race;
    const uint32_t me = c->number, it = 1 - me, writes = kind == UNICORN_WRITES;
    const bt_access access = { c->phase + 1, c->pc, c->site };
    (void)value;
    if (!is_watched(c, (uint32_t)address))
        return;
    bt_byte *byte = &b->bytes[address - b->origin];
    for (int i = 0; i < size; i++, byte++) {
        const bt_access *against = byte->wrote[it].phase == access.phase                ? &byte->wrote[it]
                                   : writes && byte->read[it].phase == access.phase ? &byte->read[it]
                                                                                    : NULL;
        if (against != NULL) {
            *race = (bt_race){ .found = 1, .address = (uint32_t)address + (uint32_t)i };
            race->phase = c->phase - c->chip->first_phase;
            race->writes[me] = writes;
            race->writes[it] = against == &byte->wrote[it];
            race->by[me] = access;
            race->by[it] = *against;
            stop(c->chip, unicorn, RACE);
            return;
        }
        *(writes ? &byte->wrote[me] : &byte->read[me]) = access;
    }
}
