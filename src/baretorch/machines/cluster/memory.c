/* Memories, event unit, DMA, GEMM and console of a cluster: everything that cores share. */
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

/* The bytes from `address` on; NULL if they are not all in one memory. */
static uint8_t *whole(struct bt_cluster *c, uint32_t address, uint32_t bytes)
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
    uint8_t *to = whole(c, address, bytes);
    if (to == NULL) {
        return false;
    }
    memcpy(to, data, bytes);
    return true;
}

bool bt_cluster_peek(struct bt_cluster *c, uint32_t address, uint8_t *data, uint32_t bytes)
{
    const uint8_t *from = whole(c, address, bytes);
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
    for (unsigned i = 0; i <= BT_CHANNELS; i++) {
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

/* What a unit does is as if the core that starts it did it, and again the one that waits for it: until that has been
 * granted, which may take long, and until a barrier then tells the others, none of them may write what is read. */
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
        if (whole(c, r.start, r.bytes) == NULL) {
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
        memmove(whole(c, target, to.bytes), whole(c, from.start + i * from.step, to.bytes), to.bytes);
    }
    uint64_t beats = (uint64_t)to.rows * ((to.bytes + k->dma_bytes - 1u) / k->dma_bytes);
    uint64_t begins = cycle + k->dma_start > c->dma_free ? cycle + k->dma_start : c->dma_free;
    t.ends = c->dma_free = begins + beats;
    c->transfer[channel] = t;
    c->open++;
    note_work(c, channel, cycle, begins);
    return true;
}

/* GEMM: y[h][w][j] = clamp(zero + requantize(bias[j] + sum of x * weight[j] over the window at (h, w), multiplier[j])),
 * where x is x_zero outside of the image, and of a pool's windows the largest counts. All of it lies in the scratchpad.
 * A product of matrices is that with windows of one pixel. ------------------------------------------------------ */

static int32_t int32_at(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static int32_t gemm_output(struct bt_cluster *c, uint32_t h, uint32_t w, uint32_t j)
{
    const uint32_t *r = c->gemm_register;
    uint32_t kernel_h = r[BT_GEMM_KERNEL_H], kernel_w = r[BT_GEMM_KERNEL_W], in = r[BT_GEMM_IN], in_w = r[BT_GEMM_IN_W];
    const int8_t *x = (const int8_t *)whole(c, r[BT_GEMM_X], 1);
    const int8_t *b = (const int8_t *)whole(c, r[BT_GEMM_WEIGHT] + j * kernel_h * kernel_w * in, 1);
    uint32_t sum = (uint32_t)int32_at(whole(c, r[BT_GEMM_BIAS] + 4u * j, 4));
    for (uint32_t i = 0; i < kernel_h; i++) {
        uint32_t at_h = h * r[BT_GEMM_STRIDE_H] + i - r[BT_GEMM_PAD_TOP];
        for (uint32_t k = 0; k < kernel_w; k++, b += in) {
            uint32_t at_w = w * r[BT_GEMM_STRIDE_W] + k - r[BT_GEMM_PAD_LEFT];
            bool inside = at_h < r[BT_GEMM_IN_H] && at_w < in_w;
            for (uint32_t channel = 0; channel < in; channel++) {
                int32_t a = inside ? x[(at_h * in_w + at_w) * in + channel] : (int32_t)r[BT_GEMM_X_ZERO];
                sum += (uint32_t)(a * b[channel]);
            }
        }
    }
    int64_t product =
        (int64_t)(int32_t)(sum << r[BT_GEMM_SHIFT]) * int32_at(whole(c, r[BT_GEMM_MULTIPLIER] + 4u * j, 4));
    int32_t value = (int32_t)r[BT_GEMM_ZERO] + (int32_t)((product + ((int64_t)1 << 31)) >> 32);
    int32_t lo = (int32_t)r[BT_GEMM_LO], hi = (int32_t)r[BT_GEMM_HI];
    return value < lo ? lo : value > hi ? hi : value;
}

static void gemm(struct bt_cluster *c)
{
    const uint32_t *r = c->gemm_register;
    uint32_t pool_h = r[BT_GEMM_POOL_H], pool_w = r[BT_GEMM_POOL_W];
    for (uint32_t h = 0; h < r[BT_GEMM_OUT_H]; h++) {
        for (uint32_t w = 0; w < r[BT_GEMM_OUT_W]; w++) {
            uint8_t *y = whole(c, r[BT_GEMM_Y] + (h * r[BT_GEMM_OUT_W] + w) * r[BT_GEMM_Y_STEP], 1);
            for (uint32_t j = 0; j < r[BT_GEMM_OUT]; j++) {
                int32_t most = INT32_MIN;
                for (uint32_t i = 0; i < pool_h * pool_w; i++) {
                    int32_t value = gemm_output(c, h * pool_h + i / pool_w, w * pool_w + i % pool_w, j);
                    most = value > most ? value : most;
                }
                y[j] = (uint8_t)most;
            }
        }
    }
}

/* The bytes are all in the scratchpad, which is the first memory. */
static bool near(const struct bt_cluster *c, uint32_t address, uint64_t bytes)
{
    uint32_t offset = address - c->config.memory[0].origin;
    return offset < c->config.memory[0].size && bytes <= c->config.memory[0].size - offset;
}

static uint64_t rounds(uint64_t count, uint32_t at_a_time)
{
    return (count + at_a_time - 1u) / at_a_time;
}

static bool start_gemm(struct bt_cluster *c, unsigned core, uint64_t cycle)
{
    const uint32_t *r = c->gemm_register;
    const struct bt_config *k = &c->config;
    struct bt_transfer *t = &c->transfer[BT_CHANNELS];
    bool sizes = !t->open && r[BT_GEMM_SHIFT] <= 31;
    for (unsigned i = BT_GEMM_IN_H; i <= BT_GEMM_POOL_W; i++) { /* so that no product of them leaves 64 bits */
        bool may_be_none = i == BT_GEMM_PAD_TOP || i == BT_GEMM_PAD_LEFT;
        sizes = sizes && (r[i] != 0 || may_be_none) && r[i] <= k->memory[0].size;
    }
    if (!sizes) {
        return blame(c, BT_UNIT_RULE, core, k->gemm, true);
    }
    uint32_t columns = r[BT_GEMM_OUT];
    uint64_t image = (uint64_t)r[BT_GEMM_IN_H] * r[BT_GEMM_IN_W], pixels = (uint64_t)r[BT_GEMM_OUT_H] * r[BT_GEMM_OUT_W];
    uint64_t taps = (uint64_t)r[BT_GEMM_KERNEL_H] * r[BT_GEMM_KERNEL_W], most = k->memory[0].size;
    if (image > most || pixels > most || taps > most || image * r[BT_GEMM_IN] > most || pixels * columns > most ||
        taps * r[BT_GEMM_IN] > most || (r[BT_GEMM_BIAS] | r[BT_GEMM_MULTIPLIER] | r[BT_GEMM_WEIGHT]) % 4u != 0 ||
        !near(c, r[BT_GEMM_X], image * r[BT_GEMM_IN]) || !near(c, r[BT_GEMM_WEIGHT], taps * r[BT_GEMM_IN] * columns) ||
        !near(c, r[BT_GEMM_BIAS], 4u * (uint64_t)columns) || !near(c, r[BT_GEMM_MULTIPLIER], 4u * (uint64_t)columns) ||
        !near(c, r[BT_GEMM_Y], (pixels - 1u) * r[BT_GEMM_Y_STEP] + columns)) {
        return blame(c, BT_UNIT_RULE, core, k->gemm, true);
    }
    uint32_t image_bytes = (uint32_t)(image * r[BT_GEMM_IN]), weight_bytes = (uint32_t)(taps * r[BT_GEMM_IN] * columns);
    struct bt_transfer work = {
        .open = true, .core = core, .site = c->core[core].site,
        .writes = {r[BT_GEMM_Y], columns, (uint32_t)pixels, r[BT_GEMM_Y_STEP]},
        .reads = {{r[BT_GEMM_X], image_bytes, 1, 0}, {r[BT_GEMM_WEIGHT], weight_bytes, 1, 0},
                  {r[BT_GEMM_BIAS], 4u * columns, 1, 0}, {r[BT_GEMM_MULTIPLIER], 4u * columns, 1, 0}},
    };
    if (!touch_all(c, core, &work)) {
        return false;
    }
    gemm(c);
    *t = work;
    /* A block of gemm_rows windows and gemm_columns channels takes gemm_depth products of each per cycle, of a row of the
     * kernel at a time; its outputs leave gemm_columns at a time while the next block is computed. */
    uint64_t block = r[BT_GEMM_KERNEL_H] * rounds((uint64_t)r[BT_GEMM_KERNEL_W] * r[BT_GEMM_IN], k->gemm_depth);
    uint64_t windows = pixels * r[BT_GEMM_POOL_H] * r[BT_GEMM_POOL_W];
    block = block > k->gemm_rows ? block : k->gemm_rows;
    t->ends = cycle + k->gemm_start + rounds(windows, k->gemm_rows) * rounds(columns, k->gemm_columns) * block;
    c->open++;
    note_work(c, BT_CHANNELS, cycle, cycle);
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

/* Event unit: the load that is the barrier is granted to all, in the cycle after the last has asked. --------------- */

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
        uint32_t index = (word - k->dma) / 4u;
        if (!write) {
            *data = c->dma_register[index];
        } else if (index != BT_DMA_START) {
            c->dma_register[index] = *data;
        } else if (!start_dma(c, core, granted, *data)) {
            return BT_FAULTED;
        }
    } else if (k->dma != 0 && word - k->dma - BT_DMA_WAIT < 4u * k->dma_channels && !write) {
        return wait_for(c, core, granted, (word - k->dma - BT_DMA_WAIT) / 4u, data);
    } else if (k->gemm != 0 && word - k->gemm < 4u * BT_GEMM_START) {
        uint32_t index = (word - k->gemm) / 4u;
        if (write) {
            c->gemm_register[index] = *data;
        }
        *data = c->gemm_register[index];
    } else if (k->gemm != 0 && word == k->gemm + 4u * BT_GEMM_START && write) {
        if (!start_gemm(c, core, granted)) {
            return BT_FAULTED;
        }
    } else if (k->gemm != 0 && word == k->gemm + 4u * BT_GEMM_WAIT && !write) {
        return wait_for(c, core, granted, BT_CHANNELS, data);
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
