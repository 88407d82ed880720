/* The inner loop of the Unicorn machine, on the host: counts instructions and plays the chip's registers.
 *
 * Unicorn calls bt_on_block before every basic block, and bt_on_read and bt_on_write for every access to register
 * space. Python fills in a bt_machine (unicorn.py mirrors its fields) and looks at it whenever emulation stops.
 *
 * Counting by blocks is exact: the run function is entered by a call and left by a return, both of which end a block.
 * An instruction in an IT block counts whether its condition holds or not, as in QEMU: it takes its cycle either way.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { CONSTANT, CONSOLE_STATUS, CONSOLE_DATA, COUNTER };
enum { NOT_STOPPED, WAITS_FOR_INPUT, OUTPUT_IS_FULL, TIME_IS_UP };

/* A register that does more than read as zero. */
typedef struct {
    uint32_t address;
    uint32_t kind;
    uint32_t empty;  /* CONSOLE_STATUS: its value while no input is there */
    uint32_t filled; /* CONSOLE_STATUS: while some is; CONSTANT: always; COUNTER: the bits that read inverted */
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

typedef struct {
    int (*stop)(void *unicorn);
    int (*peek)(void *unicorn, uint64_t address, void *bytes, size_t size);
    const bt_register *registers;
    const uint16_t *code;
    const uint8_t *input;
    uint8_t *output;
    uint64_t *calls;   /* a ring: instructions of each call of the run function */
    bt_block *blocks;  /* one for each halfword of code */
    uint32_t *touched; /* halfwords whose blocks have been counted for */
    bt_row *rows;      /* of the last call */
    bt_block *last;    /* block that ran */
    double deadline;   /* in seconds of the monotonic clock */
    double ticks_per_instruction;
    uint64_t instructions; /* since reset */
    uint64_t entered;      /* `instructions` when the run function was entered */
    uint64_t next_look;    /* at the clock */
    uint64_t call_count;
    uint64_t row_count; /* those that found no room included */
    uint32_t register_count;
    uint32_t input_bytes, input_taken;
    uint32_t output_bytes, output_room;
    uint32_t call_room, row_room;
    uint32_t code_origin, code_bytes;
    uint32_t run, returned; /* addresses: the run function, and where it returns to */
    uint32_t home[4];       /* two ranges of addresses: the run function and the part of it that calls the layers */
    uint32_t running;       /* between run and returned */
    uint32_t at_home, site; /* of the last block */
    uint32_t last_end;
    uint32_t touched_count;
    uint32_t polls; /* reads of the console's status in a row that found no input */
    uint32_t stopped;
} bt_machine;

static void stop(bt_machine *m, void *unicorn, uint32_t why)
{
    m->stopped = why;
    m->stop(unicorn);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t instruction_bytes(const bt_machine *m, void *unicorn, uint32_t pc)
{
    uint16_t opcode = 0;
    if (pc - m->code_origin < m->code_bytes)
        opcode = m->code[(pc - m->code_origin) / 2];
    else
        m->peek(unicorn, pc, &opcode, sizeof opcode);
    return opcode >> 11 >= 0x1d ? 4 : 2;
}

static uint32_t instructions_in(const bt_machine *m, void *unicorn, uint32_t pc, uint32_t bytes)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < bytes; at += instruction_bytes(m, unicorn, pc + at))
        n++;
    return n;
}

/* Make rows of what was counted. */
static void write_rows(bt_machine *m)
{
    for (uint32_t i = 0; i < m->touched_count; i++) {
        bt_block *b = &m->blocks[m->touched[i]];
        if (m->row_count < m->row_room)
            m->rows[m->row_count] = (bt_row){ b->executed, b->taken, m->site, m->code_origin + 2 * m->touched[i],
                                              b->instructions, 0 };
        m->row_count++;
        b->executed = b->taken = 0;
    }
    m->touched_count = 0;
}

static void begin_call(bt_machine *m)
{
    m->running = 1;
    m->entered = m->instructions;
    m->row_count = 0;
    m->at_home = 1;
    m->site = 0;
    m->last = NULL;
}

static void end_call(bt_machine *m)
{
    m->running = 0;
    m->calls[m->call_count++ % m->call_room] = m->instructions - m->entered;
    write_rows(m);
}

static uint32_t is_home(const bt_machine *m, uint32_t pc)
{
    return (pc >= m->home[0] && pc < m->home[1]) || (pc >= m->home[2] && pc < m->home[3]);
}

/* Control has come to pc: by a jump, a call or a return, or because the block before it ends there. */
static void arrive(bt_machine *m, uint32_t pc)
{
    uint32_t at_home = is_home(m, pc);
    if (m->last != NULL)
        m->last->taken += pc != m->last_end;
    if (at_home != m->at_home) {
        write_rows(m);
        m->at_home = at_home;
        m->site = at_home ? 0 : m->last_end;
    }
}

static uint32_t count(bt_machine *m, void *unicorn, uint32_t pc, uint32_t bytes)
{
    uint32_t index = (pc - m->code_origin) / 2;
    m->last = NULL;
    m->last_end = pc + bytes;
    if (pc - m->code_origin >= m->code_bytes)
        return instructions_in(m, unicorn, pc, bytes);
    bt_block *b = &m->blocks[index];
    if (b->bytes != bytes) {
        if (b->executed)
            write_rows(m);
        b->bytes = bytes;
        b->instructions = instructions_in(m, unicorn, pc, bytes);
    }
    if (m->running) {
        m->last = b;
        if (b->executed++ == 0)
            m->touched[m->touched_count++] = index;
    }
    return b->instructions;
}

void bt_on_block(void *unicorn, uint64_t address, uint32_t bytes, void *machine)
{
    bt_machine *m = machine;
    uint32_t pc = (uint32_t)address;
    if (m->running)
        arrive(m, pc);
    if (pc == m->run && !m->running)
        begin_call(m);
    else if (pc == m->returned && m->running)
        end_call(m);
    m->instructions += count(m, unicorn, pc, bytes);
    if (m->instructions >= m->next_look) {
        m->next_look = m->instructions + 0x10000;
        if (now() > m->deadline)
            stop(m, unicorn, TIME_IS_UP);
    }
}

static const bt_register *find(const bt_machine *m, uint32_t address)
{
    for (uint32_t i = 0; i < m->register_count; i++)
        if (m->registers[i].address == address)
            return &m->registers[i];
    return NULL;
}

static uint32_t console_status(bt_machine *m, void *unicorn, const bt_register *r)
{
    if (m->input_taken < m->input_bytes)
        return r->filled;
    /* Senders look at the same register, but once per byte: the second look in a row waits for input. */
    if (++m->polls > 1)
        stop(m, unicorn, WAITS_FOR_INPUT);
    return r->empty;
}

static uint64_t read_register(bt_machine *m, void *unicorn, uint32_t address)
{
    const bt_register *r = find(m, address);
    if (r == NULL)
        return 0;
    switch (r->kind) {
    case CONSOLE_STATUS:
        return console_status(m, unicorn, r);
    case CONSOLE_DATA:
        return m->input_taken < m->input_bytes ? m->input[m->input_taken++] : 0;
    case COUNTER:
        return (uint32_t)(uint64_t)((double)m->instructions * m->ticks_per_instruction) ^ r->filled;
    default:
        return r->filled;
    }
}

static void write_register(bt_machine *m, void *unicorn, uint32_t address, uint64_t value)
{
    const bt_register *r = find(m, address);
    if (r == NULL || r->kind != CONSOLE_DATA)
        return;
    m->polls = 0;
    m->output[m->output_bytes++] = (uint8_t)value;
    if (m->output_bytes >= m->output_room / 2) /* a stop takes effect at the end of a basic block */
        stop(m, unicorn, OUTPUT_IS_FULL);
}

/* Unicorn gives offsets into the mapped range: each range has a bt_range that tells where it starts. */
typedef struct {
    bt_machine *machine;
    uint64_t origin;
} bt_range;

uint64_t bt_on_read(void *unicorn, uint64_t offset, unsigned size, void *range)
{
    const bt_range *r = range;
    (void)size;
    return read_register(r->machine, unicorn, (uint32_t)(r->origin + offset));
}

void bt_on_write(void *unicorn, uint64_t offset, unsigned size, uint64_t value, void *range)
{
    const bt_range *r = range;
    (void)size;
    write_register(r->machine, unicorn, (uint32_t)(r->origin + offset), value);
}
