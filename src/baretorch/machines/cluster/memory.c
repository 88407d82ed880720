/* Memories, event unit, DMA, accelerator units and console of a cluster: everything that cores share. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "decode.h"

struct bt_cluster *bt_cluster_new(const struct bt_config *config)
{
    struct bt_cluster *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->config = *config;
    c->team = (1u << config->cores) - 1u;
    c->epoch = 1;
    for (unsigned m = 0; m < config->memories; m++) {
        c->bytes[m] = calloc(config->memory[m].size + 4u, 1);
        c->ops[m] = calloc(config->memory[m].size / 2u + 1u, sizeof *c->ops[m]);
        c->shadow[m] = config->cores > 1 ? calloc(config->memory[m].size, sizeof *c->shadow[m]) : NULL;
        if (c->bytes[m] == NULL || c->ops[m] == NULL || (config->cores > 1 && c->shadow[m] == NULL)) {
            bt_cluster_free(c);
            return NULL;
        }
    }
    for (uint32_t i = 0; i < config->cores; i++) {
        struct bt_core *core = &c->core[i];
        core->number = i;
        core->pc = config->boot;
        core->loaded = BT_ANY;
        core->counts = true;
        core->counter_base = BT_BOOT; /* the counter starts with the clock */
        core->before = core->before2 = bt_no_op();
    }
    return c;
}

void bt_cluster_free(struct bt_cluster *c)
{
    for (unsigned m = 0; m < BT_MEMORIES; m++) {
        free(c->bytes[m]);
        free(c->ops[m]);
        free(c->shadow[m]);
    }
    free(c->trace);
    free(c->in);
    free(c->call_instructions);
    free(c->call_cycles);
    free(c->spans);
    free(c->pauses);
    free(c->works);
    free(c);
}

void *bt_room(void *array, uint64_t count, uint64_t *room, uint64_t size)
{
    if (count < *room) {
        return array;
    }
    *room = 2 * *room + 64;
    void *more = realloc(array, *room * size);
    if (more == NULL) {
        abort();
    }
    return more;
}

unsigned bt_memory_at(const struct bt_cluster *c, uint32_t address)
{
    unsigned m = 0;
    while (m < c->config.memories && address - c->config.memory[m].origin >= c->config.memory[m].size) {
        m++;
    }
    return m < c->config.memories ? m : BT_MEMORIES;
}

uint8_t *bt_bytes_at(struct bt_cluster *c, uint32_t address, uint32_t bytes)
{
    unsigned m = bt_memory_at(c, address);
    if (m == BT_MEMORIES) {
        return NULL;
    }
    uint32_t offset = address - c->config.memory[m].origin;
    return bytes <= c->config.memory[m].size - offset ? c->bytes[m] + offset : NULL;
}

bool bt_cluster_load(struct bt_cluster *c, uint32_t address, const uint8_t *data, uint32_t bytes)
{
    uint8_t *to = bt_bytes_at(c, address, bytes);
    if (to == NULL) {
        return false;
    }
    memcpy(to, data, bytes);
    return true;
}

bool bt_cluster_peek(struct bt_cluster *c, uint32_t address, uint8_t *data, uint32_t bytes)
{
    const uint8_t *from = bt_bytes_at(c, address, bytes);
    if (from == NULL) {
        return false;
    }
    memcpy(data, from, bytes);
    return true;
}

bool bt_cluster_input(struct bt_cluster *c, const uint8_t *data, uint64_t bytes)
{
    uint64_t left = c->in_end - c->in_at;
    if (left + bytes > c->in_room) {
        uint8_t *more = malloc(2 * (left + bytes));
        if (more == NULL) {
            return false;
        }
        if (left != 0) {
            memcpy(more, c->in + c->in_at, left);
        }
        free(c->in);
        c->in = more;
        c->in_room = 2 * (left + bytes);
    } else if (left != 0) {
        memmove(c->in, c->in + c->in_at, left);
    }
    memcpy(c->in + left, data, bytes);
    c->in_at = 0;
    c->in_end = left + bytes;
    c->polls = 0;
    return true;
}

uint32_t bt_cluster_output(struct bt_cluster *c, uint8_t *data, uint32_t room)
{
    uint32_t bytes = c->out_bytes < room ? c->out_bytes : room;
    memcpy(data, c->out, bytes);
    memmove(c->out, c->out + bytes, c->out_bytes - bytes);
    c->out_bytes -= bytes;
    return bytes;
}

/* Faults -------------------------------------------------------------------------------------------------------- */

static bool blame(struct bt_cluster *c, enum bt_fault fault, unsigned core, uint32_t address, bool write)
{
    if (c->report.fault == BT_NO_FAULT) {
        const struct bt_core *at = &c->core[core];
        c->report = (struct bt_report){fault, core, core, address, at->pc, at->site, at->site, write, write};
    }
    return false;
}

static bool blame_other(struct bt_cluster *c, unsigned other, uint32_t site, bool write)
{
    c->report.other = other;
    c->report.other_site = site;
    c->report.other_writes = write;
    return false;
}

/* Whether they have a byte of [from, from + count). */
static bool rows_meet(struct bt_rows r, uint32_t from, uint32_t count)
{
    uint32_t before = from < r.start + r.bytes || r.step == 0 ? 0 : (from - r.start - r.bytes) / r.step + 1u; /* rows */
    uint32_t first = r.start + before * r.step;
    return before < r.rows && from < first + r.bytes && first < from + count;
}

static bool is_read(const struct bt_transfer *t, uint32_t from, uint32_t count)
{
    for (unsigned i = 0; i < BT_READS; i++) {
        if (rows_meet(t->reads[i], from, count)) {
            return true;
        }
    }
    return false;
}

static bool transfer_meets(struct bt_cluster *c, unsigned core, uint32_t address, uint32_t bytes, bool write)
{
    for (unsigned i = 0; i < BT_CHANNELS + BT_UNITS; i++) {
        const struct bt_transfer *t = &c->transfer[i];
        if (t->open && (rows_meet(t->writes, address, bytes) || (write && is_read(t, address, bytes)))) {
            blame(c, BT_IN_TRANSFER, core, address, write);
            blame_other(c, i, t->site, true);
            return true;
        }
    }
    return false;
}

bool bt_touch(struct bt_cluster *c, unsigned core, unsigned memory, uint32_t offset, uint32_t bytes, bool write)
{
    uint32_t address = c->config.memory[memory].origin + offset;
    if (c->open != 0 && transfer_meets(c, core, address, bytes, write)) {
        return false;
    }
    if (c->shadow[memory] == NULL) {
        return true;
    }
    uint32_t site = c->core[core].site;
    struct bt_shadow *s = c->shadow[memory] + offset;
    for (uint32_t i = 0; i < bytes; i++, s++) {
        if (s->write_epoch == c->epoch && s->writer != core) {
            blame(c, BT_RACE, core, address + i, write);
            return blame_other(c, s->writer, s->write_site, true);
        }
        uint8_t self = (uint8_t)(1u << core);
        if (!write) {
            s->readers = s->read_epoch == c->epoch ? (uint8_t)(s->readers | self) : self;
            s->read_epoch = c->epoch;
            s->reader = (uint8_t)core;
            s->read_site = site;
            continue;
        }
        if (s->read_epoch == c->epoch && (s->readers & ~self) != 0) {
            unsigned other = s->reader != core ? s->reader : (unsigned)__builtin_ctz((unsigned)(s->readers & ~self));
            blame(c, BT_RACE, core, address + i, write);
            return blame_other(c, other, s->read_site, false);
        }
        s->write_epoch = c->epoch;
        s->writer = (uint8_t)core;
        s->write_site = site;
    }
    return true;
}

static bool touch_rows(struct bt_cluster *c, unsigned core, struct bt_rows r, bool write)
{
    for (; r.rows != 0; r.rows--, r.start += r.step) {
        unsigned m = bt_memory_at(c, r.start);
        if (!bt_touch(c, core, m, r.start - c->config.memory[m].origin, r.bytes, write)) {
            return false;
        }
    }
    return true;
}

/* A unit's accesses count for the core that starts it, and again for the one that waits for it: until the wait has been
 * granted, which may take long, and until a barrier after it, no other core may write what is read. */
static bool touch_all(struct bt_cluster *c, unsigned core, const struct bt_transfer *t)
{
    for (unsigned i = 0; i < BT_READS; i++) {
        if (!touch_rows(c, core, t->reads[i], false)) {
            return false;
        }
    }
    return touch_rows(c, core, t->writes, true);
}

static void note_work(struct bt_cluster *c, unsigned channel, uint64_t asked, uint64_t begin)
{
    const struct bt_transfer *t = &c->transfer[channel];
    if (c->core[t->core].measured) {
        c->works = bt_room(c->works, c->work_count, &c->work_room, sizeof *c->works);
        c->works[c->work_count++] = (struct bt_work){
            channel, t->core, t->site, t->reads[0].start, t->writes.start, t->writes.bytes * t->writes.rows,
            asked, begin, t->ends,
        };
    }
}

/* DMA ----------------------------------------------------------------------------------------------------------- */

static bool rows_there(struct bt_cluster *c, struct bt_rows r)
{
    for (; r.rows != 0; r.rows--, r.start += r.step) {
        if (bt_bytes_at(c, r.start, r.bytes) == NULL) {
            return false;
        }
    }
    return true;
}

static bool start_dma(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t channel)
{
    const uint32_t *r = c->dma_register;
    const struct bt_config *k = &c->config;
    struct bt_rows from = {r[BT_DMA_SOURCE], r[BT_DMA_ROW], r[BT_DMA_ROWS], r[BT_DMA_SOURCE_STEP]};
    struct bt_rows to = {r[BT_DMA_TARGET], r[BT_DMA_ROW], r[BT_DMA_ROWS], r[BT_DMA_TARGET_STEP]};
    if (channel >= k->dma_channels || c->transfer[channel].open || to.bytes == 0 || to.rows == 0 ||
        !rows_there(c, from) || !rows_there(c, to)) {
        return blame(c, BT_UNIT_RULE, core, k->dma, true);
    }
    struct bt_transfer t = {.open = true, .core = core, .site = c->core[core].site, .writes = to, .reads = {from}};
    if (!touch_all(c, core, &t)) {
        return false;
    }
    unsigned m = bt_memory_at(c, to.start);
    for (uint32_t i = 0; i < to.rows; i++) {
        uint32_t target = to.start + i * to.step;
        bt_code_written(c, m, target - k->memory[m].origin, to.bytes);
        memmove(bt_bytes_at(c, target, to.bytes), bt_bytes_at(c, from.start + i * from.step, to.bytes), to.bytes);
    }
    uint64_t beats = (uint64_t)to.rows * ((to.bytes + k->dma_bytes - 1u) / k->dma_bytes);
    uint64_t begins = cycle + k->dma_start > c->dma_free ? cycle + k->dma_start : c->dma_free;
    t.ends = c->dma_free = begins + beats;
    c->transfer[channel] = t;
    c->open++;
    note_work(c, channel, cycle, begins);
    return true;
}

/* Accelerator units: see struct bt_unit_kind --------------------------------------------------------------------- */

bool bt_near(const struct bt_cluster *c, uint32_t address, uint64_t bytes)
{
    uint32_t offset = address - c->config.memory[0].origin;
    return offset < c->config.memory[0].size && bytes <= c->config.memory[0].size - offset;
}

unsigned bt_unit_at(const struct bt_cluster *c, uint32_t address)
{
    for (unsigned n = 0; n < c->config.units; n++) {
        const struct bt_unit *u = &c->config.unit[n];
        if (address - u->base < 4u * (u->kind->start + 2u)) {
            return n;
        }
    }
    return BT_UNITS;
}

static bool start_unit(struct bt_cluster *c, unsigned n, unsigned core, uint64_t cycle)
{
    const struct bt_unit *u = &c->config.unit[n];
    const uint32_t *r = c->unit_register[n];
    unsigned channel = BT_CHANNELS + n;
    struct bt_transfer work = {.open = true, .core = core, .site = c->core[core].site};
    if (c->transfer[channel].open || !u->kind->request(c, u, r, &work)) {
        return blame(c, BT_UNIT_RULE, core, u->base, true);
    }
    if (!touch_all(c, core, &work)) {
        return false;
    }
    u->kind->compute(c, r);
    work.ends += cycle;
    c->transfer[channel] = work;
    c->open++;
    note_work(c, channel, cycle, cycle);
    return true;
}

/* The load that waits for a unit's work is granted when that is done. */
static int64_t wait_for(struct bt_cluster *c, unsigned core, uint64_t cycle, unsigned channel, uint32_t *data)
{
    struct bt_transfer *t = &c->transfer[channel];
    *data = 0;
    if (!t->open) {
        return (int64_t)cycle;
    }
    t->open = false;
    c->open--;
    if (!touch_all(c, core, t)) {
        return BT_FAULTED;
    }
    return (int64_t)(t->ends > cycle ? t->ends : cycle);
}

/* Event unit: the load that is the barrier is granted to all, in the cycle after the last request. --------------- */

static int64_t barrier(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t *data)
{
    *data = c->epoch;
    if (c->granted[core] == 0) {
        c->arrived |= 1u << core;
        if ((c->arrived & c->team) != c->team) {
            return BT_BLOCKED;
        }
        for (unsigned i = 0; i < c->config.cores; i++) {
            c->granted[i] = (c->arrived >> i & 1u) != 0 ? cycle + 1u + c->config.barrier_cycles : 0;
        }
        c->arrived = 0;
        c->epoch++;
        c->woken = true;
    }
    uint64_t when = c->granted[core];
    c->granted[core] = 0;
    return (int64_t)when;
}

/* Console: what our driver of a 16550 uses of it. ------------------------------------------------------------------- */

enum { UART_DATA = 0, UART_LINE_CONTROL = 3, UART_LINE_STATUS = 5 };
enum { UART_DIVIDER = 0x80, UART_RECEIVED = 0x01, UART_IDLE = 0x60 };

static uint32_t uart_read(struct bt_cluster *c, uint32_t offset)
{
    bool some = c->in_at < c->in_end;
    if (offset == UART_LINE_STATUS) {
        c->polls += some ? 0u : 1u;
        return UART_IDLE | (some ? UART_RECEIVED : 0u);
    }
    return offset == UART_DATA && some ? c->in[c->in_at++] : 0u;
}

static void uart_write(struct bt_cluster *c, uint32_t offset, uint8_t byte)
{
    if (offset == UART_LINE_CONTROL) {
        c->line_control = byte;
    } else if (offset == UART_DATA && (c->line_control & UART_DIVIDER) == 0 && c->out_bytes < BT_OUT) {
        c->out[c->out_bytes++] = byte;
        c->polls = 0;
    }
}

/* All -------------------------------------------------------------------------------------------------------------- */

static int64_t registers(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t address, unsigned bytes,
                         bool write, uint32_t *data)
{
    const struct bt_config *k = &c->config;
    uint64_t granted = cycle + k->registers_wait;
    uint32_t word = address & ~3u;
    unsigned unit = bt_unit_at(c, word);
    uint32_t index = unit < BT_UNITS ? (word - k->unit[unit].base) / 4u : (word - k->dma) / 4u;
    if (k->uart != 0 && word - k->uart < 8u) {
        unsigned lane = (unsigned)__builtin_ctz(bytes);
        uint32_t offset = word - k->uart + lane;
        if (write) {
            uart_write(c, offset, (uint8_t)(*data >> 8u * lane));
        } else {
            *data = uart_read(c, offset) << 8u * lane;
        }
    } else if (k->events != 0 && word == k->events + BT_EVENT_BARRIER && !write) {
        return barrier(c, core, cycle, data);
    } else if (k->events != 0 && word == k->events + BT_EVENT_TEAM) {
        if (write) {
            c->team = *data;
        }
        *data = c->team;
    } else if (k->events != 0 && word == k->events + BT_EVENT_COUNT && !write) {
        *data = k->cores;
    } else if (k->dma != 0 && word - k->dma < 4u * (BT_DMA_START + 1u)) {
        if (!write) {
            *data = c->dma_register[index];
        } else if (index != BT_DMA_START) {
            c->dma_register[index] = *data;
        } else if (!start_dma(c, core, granted, *data)) {
            return BT_FAULTED;
        }
    } else if (k->dma != 0 && word - k->dma - BT_DMA_WAIT < 4u * k->dma_channels && !write) {
        return wait_for(c, core, granted, (word - k->dma - BT_DMA_WAIT) / 4u, data);
    } else if (unit < BT_UNITS && index < k->unit[unit].kind->start) {
        if (write) {
            c->unit_register[unit][index] = *data;
        }
        *data = c->unit_register[unit][index];
    } else if (unit < BT_UNITS && index == k->unit[unit].kind->start && write) {
        if (!start_unit(c, unit, core, granted)) {
            return BT_FAULTED;
        }
    } else if (unit < BT_UNITS && index == k->unit[unit].kind->start + 1u && !write) {
        return wait_for(c, core, granted, BT_CHANNELS + unit, data);
    } else {
        blame(c, BT_NO_MEMORY, core, address, write);
        return BT_NOWHERE;
    }
    return (int64_t)granted;
}

static int64_t serve(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t address, unsigned bytes, bool write,
                     uint32_t *data)
{
    unsigned m = bt_memory_at(c, address);
    if (m == BT_MEMORIES) {
        return registers(c, core, cycle, address, bytes, write, data);
    }
    const struct bt_memory *memory = &c->config.memory[m];
    uint32_t offset = (address - memory->origin) & ~3u;
    if (memory->banks != 0) {
        uint64_t *taken = &c->taken[m][offset / 4u % memory->banks];
        if (*taken == cycle + 1u) {
            return BT_RETRY;
        }
        *taken = cycle + 1u;
    }
    unsigned first = (unsigned)__builtin_ctz(bytes), count = (unsigned)__builtin_popcount(bytes);
    if ((c->shadow[m] != NULL || c->open != 0) && !bt_touch(c, core, m, offset + first, count, write)) {
        return BT_FAULTED;
    }
    if (!write) {
        memcpy(data, c->bytes[m] + offset, sizeof *data);
    } else {
        for (unsigned i = 0; i < 4; i++) {
            if ((bytes >> i & 1u) != 0) {
                c->bytes[m][offset + i] = (uint8_t)(*data >> 8u * i);
            }
        }
        if (offset - c->code_from[m] < c->code_bytes[m]) {
            bt_code_written(c, m, offset, 4u);
        }
    }
    return (int64_t)(cycle + memory->wait);
}

bool bt_cluster_trace(struct bt_cluster *c, uint64_t room, bool registers_only)
{
    c->trace_registers = registers_only;
    c->trace = calloc(room, sizeof *c->trace);
    c->trace_room = room;
    return c->trace != NULL;
}

int64_t bt_access(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t address, unsigned bytes, bool write,
                  uint32_t *data)
{
    int64_t answer = serve(c, core, cycle, address, bytes, write, data);
    bool wanted = c->trace_count < c->trace_room;
    if (wanted && (!c->trace_registers || (answer >= 0 && bt_memory_at(c, address) == BT_MEMORIES))) {
        int32_t later = (int32_t)(answer < 0 ? answer : answer - (int64_t)cycle);
        c->trace[c->trace_count++] = (struct bt_event){cycle, core, address, bytes, write, *data, c->core[core].pc, later};
    }
    return answer;
}

const struct bt_report *bt_cluster_report(const struct bt_cluster *c)
{
    return &c->report;
}

const struct bt_event *bt_cluster_events(const struct bt_cluster *c, uint64_t *count)
{
    *count = c->trace_count;
    return c->trace;
}

const struct bt_span *bt_cluster_spans(const struct bt_cluster *c, uint64_t *count)
{
    *count = c->span_count;
    return c->spans;
}

const struct bt_pause *bt_cluster_pauses(const struct bt_cluster *c, uint64_t *count)
{
    *count = c->pause_count;
    return c->pauses;
}

const struct bt_work *bt_cluster_works(const struct bt_cluster *c, uint64_t *count)
{
    *count = c->work_count;
    return c->works;
}

const uint64_t *bt_cluster_calls(const struct bt_cluster *c, bool cycles, uint64_t *count)
{
    *count = c->calls;
    return cycles ? c->call_cycles : c->call_instructions;
}
