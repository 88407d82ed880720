/* A cluster of CV32E40P cores around a banked scratchpad (L1), a slower memory (L2), a DMA engine, an event unit and
 * accelerator units. memory.c is all but the cores; the simulator (core.c) and the judge, which is the core's own RTL under
 * Verilator (tests/cluster/judge.cpp), share it. Times are clock cycles from reset. */
#ifndef BT_CLUSTER_H
#define BT_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

/* Cycles from reset until the first instruction is in the execute stage, where simulated time begins. */
enum { BT_BOOT = 4 };

enum { BT_CORES = 8, BT_MEMORIES = 4, BT_BANKS = 64, BT_CHANNELS = 16, BT_HOMES = 9 };
enum { BT_UNITS = 4, BT_UNIT_SIZES = 8, BT_UNIT_REGISTERS = 30 };

/* As machine.py fills it in from the chip's TOML. Register bases of 0: there is none. */
struct bt_memory {
    uint32_t origin, size;
    uint32_t wait;  /* cycles that each access takes more than one */
    uint32_t banks; /* consecutive words are in consecutive banks; 0: no conflicts */
};

/* An accelerator unit: `sizes` are the numbers of its table that its simulation, `kind`, uses. */
struct bt_unit {
    uint32_t base, sizes[BT_UNIT_SIZES];
    const struct bt_unit_kind *kind;
};

struct bt_config {
    uint32_t cores, memories;
    struct bt_memory memory[BT_MEMORIES];
    uint32_t boot; /* where all cores start */
    uint32_t registers_wait;
    uint32_t uart;
    uint32_t events, barrier_cycles;
    uint32_t dma, dma_bytes, dma_start, dma_channels; /* bytes per cycle, cycles before the first */
    uint32_t units;
    struct bt_unit unit[BT_UNITS];
    uint32_t run, returned; /* a call of the model, from the first instruction to the label */
    uint32_t home[BT_HOMES][2];
};

/* What stopped a core for good. */
enum bt_fault {
    BT_NO_FAULT,
    BT_ILLEGAL,     /* an instruction that the core does not have, or whose effect is not known here */
    BT_NO_CODE,     /* a jump to where no memory is */
    BT_NO_MEMORY,   /* an access to where nothing is */
    BT_STOPPED,     /* ebreak or ecall */
    BT_LOOP_RULE,   /* a hardware loop that the core's manual forbids */
    BT_RACE,        /* two cores touch a byte between two barriers, one of them writes */
    BT_IN_TRANSFER, /* a byte that the DMA engine or a unit works on, without waiting for it */
    BT_UNIT_RULE,   /* an invalid request to a unit */
    BT_DEADLOCK,    /* all cores wait */
};

struct bt_report {
    uint32_t fault, core, other; /* `other`: the core that touched the byte before, or the channel */
    uint32_t address, pc, site, other_site;
    uint32_t writes, other_writes;
};

/* Cycles in which a core waited, by cause: `dma` and `unit` are registers of the DMA engine and of others. */
struct bt_wait {
    uint64_t load_use, conflict, slow, barrier, dma, unit;
};

/* The work of a core on a visit to a site: after a call in the run function, or in it (site 0). */
struct bt_span {
    uint32_t core, site;
    uint64_t begin, end, instructions;
    struct bt_wait wait;
};

/* When a core slept: until all were at the barrier, or until a unit was done. */
enum { BT_AT_BARRIER = BT_CHANNELS + BT_UNITS };
struct bt_pause {
    uint32_t core, channel; /* of the DMA engine; from BT_CHANNELS on a unit's */
    uint64_t begin, end;
};

/* The work of a unit: when it was requested (`asked`), began and ended. `site` is that of the core that requested it. */
struct bt_work {
    uint32_t channel, core, site, source, target, bytes; /* of what it writes */
    uint64_t asked, begin, end;
};

/* Memory layout of the unit's registers; runtime/cluster/cluster.h has the same. */
enum { BT_EVENT_BARRIER = 0, BT_EVENT_TEAM = 4, BT_EVENT_COUNT = 8 };
enum { BT_DMA_SOURCE, BT_DMA_TARGET, BT_DMA_ROW, BT_DMA_ROWS, BT_DMA_SOURCE_STEP, BT_DMA_TARGET_STEP, BT_DMA_START };
enum { BT_DMA_WAIT = 0x40 };
struct bt_op;

struct bt_core {
    uint32_t x[33]; /* the last takes what is written to x0 */
    uint32_t pc, number;
    uint64_t at;      /* the cycle in which the next instruction is in the execute stage */
    uint64_t retired; /* instructions */
    uint32_t loaded;  /* the register that the instruction before loads; 32: none */
    uint32_t slack;   /* cycles after its first that the instruction before was in the execute stage */
    const struct bt_op *before, *before2;
    uint32_t loop_start[2], loop_end[2], loop_count[2];
    uint32_t csr[8]; /* BT_MSTATUS and so on, in core.c */
    uint64_t counter_base, counter_at;
    bool counts;
    bool blocked; /* until an event */
    bool halfway; /* the first word of an access to two is done */
    bool asked;   /* the current instruction has requested memory before: its other stalls are in `at` */
    uint32_t half, stood; /* the first word; cycles that it has waited so far */
    uint32_t site;
    bool measured; /* between run and returned */
    uint64_t since, since_retired;
    struct bt_wait wait, since_wait;
};

/* Rows of bytes, `step` apart. */
struct bt_rows {
    uint32_t start, bytes, rows, step;
};

enum { BT_READS = 4 };

/* What the DMA engine copies or a unit computes. */
struct bt_transfer {
    bool open; /* until a core has waited for it */
    uint32_t core, site;
    struct bt_rows writes, reads[BT_READS];
    uint64_t ends;
};

/* Who touched a byte last, and between which barriers. */
struct bt_shadow {
    uint32_t write_epoch, read_epoch;
    uint32_t write_site, read_site;
    uint8_t writer, reader, readers; /* core; of `readers` a bit each */
};

/* A requested access. */
struct bt_event {
    uint64_t cycle;
    uint32_t core, address, bytes, write, data, pc; /* pc: of the simulator only */
    int32_t answer; /* cycles until the grant, or BT_RETRY and so on */
};

enum { BT_OUT = 1 << 22 }; /* the output between two reads: a byte takes at least five cycles */

struct bt_cluster {
    struct bt_config config;
    uint8_t *bytes[BT_MEMORIES];
    struct bt_shadow *shadow[BT_MEMORIES];
    struct bt_op *ops[BT_MEMORIES]; /* decoded instructions, one per two bytes */
    uint32_t code_from[BT_MEMORIES], code_bytes[BT_MEMORIES]; /* where they are, as offsets */
    struct bt_core core[BT_CORES];
    struct bt_report report;
    uint64_t taken[BT_MEMORIES][BT_BANKS]; /* the cycle after the one in which the bank last served */
    /* event unit */
    uint32_t team, arrived, epoch;
    uint64_t granted[BT_CORES];
    bool woken;
    /* DMA and accelerator units, whose transfers are the last */
    struct bt_transfer transfer[BT_CHANNELS + BT_UNITS];
    uint32_t open;
    uint32_t dma_register[8], unit_register[BT_UNITS][BT_UNIT_REGISTERS];
    uint64_t dma_free;
    /* console */
    uint8_t *in;
    uint64_t in_at, in_end, in_room;
    uint8_t out[BT_OUT];
    uint32_t out_bytes;
    uint8_t line_control;
    uint32_t polls; /* reads of an empty console since the last byte in either direction */
    /* every access, if there is room for them: for the judge */
    struct bt_event *trace;
    uint64_t trace_count, trace_room;
    bool trace_registers; /* only these */
    /* what was measured: calls of the run function, and what happened in the last, which began at `called` */
    uint64_t *call_instructions, *call_cycles;
    uint64_t calls, call_room, cycle_room, called;
    struct bt_span *spans;
    struct bt_pause *pauses;
    struct bt_work *works;
    uint64_t span_count, span_room, pause_count, pause_room, work_count, work_room;
};

/* Results of bt_access other than the cycle in which the request is granted, which may be later. */
enum { BT_RETRY = -1, BT_BLOCKED = -2, BT_NOWHERE = -3, BT_FAULTED = -4 };

/* memory.c */
struct bt_cluster *bt_cluster_new(const struct bt_config *config);
void bt_cluster_free(struct bt_cluster *c);
bool bt_cluster_load(struct bt_cluster *c, uint32_t address, const uint8_t *data, uint32_t bytes);
bool bt_cluster_peek(struct bt_cluster *c, uint32_t address, uint8_t *data, uint32_t bytes);
bool bt_cluster_input(struct bt_cluster *c, const uint8_t *data, uint64_t bytes);
uint32_t bt_cluster_output(struct bt_cluster *c, uint8_t *data, uint32_t room);
/* Keeps accesses: the first `room`; all, or those to registers that were granted. */
bool bt_cluster_trace(struct bt_cluster *c, uint64_t room, bool registers);
/* The results for Python; `count` is their number. */
const struct bt_report *bt_cluster_report(const struct bt_cluster *c);
const struct bt_event *bt_cluster_events(const struct bt_cluster *c, uint64_t *count);
const struct bt_span *bt_cluster_spans(const struct bt_cluster *c, uint64_t *count);
const struct bt_pause *bt_cluster_pauses(const struct bt_cluster *c, uint64_t *count);
const struct bt_work *bt_cluster_works(const struct bt_cluster *c, uint64_t *count);
const uint64_t *bt_cluster_calls(const struct bt_cluster *c, bool cycles, uint64_t *count);
/* An array with room for one more than `count`. */
void *bt_room(void *array, uint64_t count, uint64_t *room, uint64_t size);
/* The memory of an address; BT_MEMORIES if none. */
unsigned bt_memory_at(const struct bt_cluster *c, uint32_t address);
/* A request for the bytes (a bit each) of one word, as the core's data port makes it; cores ask in the order of their
 * priority in a cycle, which is core cycle % cores first. What is read or written is so at once. */
int64_t bt_access(struct bt_cluster *c, unsigned core, uint64_t cycle, uint32_t address, unsigned bytes, bool write,
                  uint32_t *data);
/* Whether a core may touch these bytes; a report if not. */
bool bt_touch(struct bt_cluster *c, unsigned core, unsigned memory, uint32_t offset, uint32_t bytes, bool write);

/* The bytes from `address` on; NULL if they are not all in one memory. */
uint8_t *bt_bytes_at(struct bt_cluster *c, uint32_t address, uint32_t bytes);
/* Whether the bytes are all in the scratchpad, which is the first memory. */
bool bt_near(const struct bt_cluster *c, uint32_t address, uint64_t bytes);
/* The unit that has a register at this address; BT_UNITS if none. */
unsigned bt_unit_at(const struct bt_cluster *c, uint32_t address);

/* The simulation of a kind of accelerator unit, in a file of its own: NAME.c defines bt_unit_NAME. A write to register
 * number `start` starts a unit, and a read of the next one waits for it. */
struct bt_unit_kind {
    uint32_t start;
    /* Checks a request. Sets what `work` reads and writes, and in `ends` the cycles that it takes. False: invalid. */
    bool (*request)(const struct bt_cluster *c, const struct bt_unit *unit, const uint32_t *registers,
                    struct bt_transfer *work);
    void (*compute)(struct bt_cluster *c, const uint32_t *registers);
};

/* core.c: runs until there is output, all input was read and more is waited for, `cycles` have passed, or a fault. */
enum { BT_HAS_OUTPUT, BT_WANTS_INPUT, BT_TIME, BT_FAULT };
int bt_cluster_run(struct bt_cluster *c, uint64_t cycles);

#endif
