/* The cores: the effects of instructions, and their times.
 *
 * The core has four stages. `at` is the cycle in which an instruction enters the execute stage; most are there for one.
 * Others take more cycles, as in the core's manual, and checked against its RTL:
 *   - a register that the instruction before loads: 1 (also if both load the same one)
 *   - a branch that is taken, from the execute stage: 2; a jump, from the decode stage, where it may have waited long
 *     enough to cost nothing: 1; a target of 4 bytes that is not aligned to them: 1 more
 *   - a jump to the address in a register: until that is written, with loads one stage later; one more if it writes its own
 *   - mulh and its like 4; division 2 and as many as the divisor has leading bits without meaning
 *   - memory: see bt_access. An access to two words makes two requests
 *   - reading or writing most CSRs, fence, cv.elw: the pipeline is emptied, and once more waited if cv.elw loads the
 *     register with its address
 *   - a hardware loop's jump: nothing */
#include <stdlib.h>
#include <string.h>

#include "decode.h"

enum { MSTATUS, MTVEC, MEPC, MCAUSE, MSCRATCH, MIE, MTVAL, MCOUNTINHIBIT };
enum { FLUSH = 3, RUN_AHEAD = 1 << 12 };

static int stop(struct bt_cluster *c, struct bt_core *core, enum bt_fault fault, uint32_t address)
{
    if (c->report.fault == BT_NO_FAULT) {
        c->report = (struct bt_report){fault, core->number, core->number, address, core->pc, core->site, core->site, 0, 0};
    }
    return BT_FAULT;
}

/* What is measured ----------------------------------------------------------------------------------------------- */

/* Ends a visit. */
static void note(struct bt_cluster *c, struct bt_core *core, uint64_t at, uint64_t retired)
{
    const struct bt_wait *now = &core->wait, *then = &core->since_wait;
    c->spans = bt_room(c->spans, c->span_count, &c->span_room, sizeof *c->spans);
    c->spans[c->span_count++] = (struct bt_span){
        .core = core->number, .site = core->site, .begin = core->since, .end = at > core->since ? at : core->since,
        .instructions = retired - core->since_retired,
        .wait = {now->load_use - then->load_use, now->conflict - then->conflict, now->slow - then->slow,
                 now->barrier - then->barrier, now->dma - then->dma, now->unit - then->unit},
    };
    core->since = at;
    core->since_retired = retired;
    core->since_wait = core->wait;
}

static void note_pause(struct bt_cluster *c, const struct bt_core *core, uint32_t channel, uint64_t begin, uint64_t end)
{
    if (!core->measured) {
        return;
    }
    for (uint64_t i = c->pause_count; i-- > 0;) { /* what follows is one */
        struct bt_pause *p = &c->pauses[i];
        if (p->core == core->number) {
            if (p->channel == channel && p->end == begin) {
                p->end = end;
                return;
            }
            break;
        }
    }
    c->pauses = bt_room(c->pauses, c->pause_count, &c->pause_room, sizeof *c->pauses);
    c->pauses[c->pause_count++] = (struct bt_pause){core->number, channel, begin, end};
}

/* A core that waits for an event has done so until now. */
static void slept_until(struct bt_cluster *c, struct bt_core *core, uint64_t at)
{
    if (core->blocked && at > core->at) {
        note_pause(c, core, BT_AT_BARRIER, core->at, at);
        core->wait.barrier += at - core->at;
        core->stood += (uint32_t)(at - core->at);
        core->at = at;
    }
}

static bool at_home(const struct bt_cluster *c, uint32_t pc)
{
    for (unsigned i = 0; i < BT_HOMES; i++) {
        if (pc - c->config.home[i][0] < c->config.home[i][1] - c->config.home[i][0]) {
            return true;
        }
    }
    return false;
}

/* A jump from `pc` to `target`: into a step's call, or back. */
static void moves(struct bt_cluster *c, struct bt_core *core, uint32_t pc, uint32_t target, uint32_t behind, bool links,
                  uint64_t at, uint64_t retired)
{
    bool from = at_home(c, pc), to = at_home(c, target);
    if (from && !to && links) {
        note(c, core, at, retired);
        core->site = behind;
    } else if (!from && to) {
        note(c, core, at, retired);
        core->site = 0;
    }
}

static void begin(struct bt_cluster *c, uint64_t at, uint64_t retired)
{
    c->span_count = c->pause_count = c->work_count = 0;
    c->called = at;
    for (uint32_t i = 0; i < c->config.cores; i++) {
        struct bt_core *core = &c->core[i];
        slept_until(c, core, at);
        core->measured = true;
        core->site = 0;
        core->since = at;
        core->since_retired = i == 0 ? retired : core->retired;
        core->since_wait = core->wait;
    }
}

static void finish(struct bt_cluster *c, uint64_t at, uint64_t retired)
{
    uint64_t instructions = 0;
    for (uint32_t i = 0; i < c->config.cores; i++) {
        struct bt_core *core = &c->core[i];
        slept_until(c, core, at);
        note(c, core, at, i == 0 ? retired : core->retired);
        core->measured = false;
        core->site = 0;
    }
    for (uint64_t i = 0; i < c->span_count; i++) {
        instructions += c->spans[i].core == 0 ? c->spans[i].instructions : 0;
    }
    c->call_instructions = bt_room(c->call_instructions, c->calls, &c->call_room, sizeof *c->call_instructions);
    c->call_cycles = bt_room(c->call_cycles, c->calls, &c->cycle_room, sizeof *c->call_cycles);
    c->call_instructions[c->calls] = instructions;
    c->call_cycles[c->calls++] = at - c->called;
}

/* Registers of the core ------------------------------------------------------------------------------------------- */

static uint64_t counter(const struct bt_core *core, uint64_t at)
{
    return core->counter_base + (core->counts ? at - core->counter_at : 0);
}

/* The value of a CSR; false if it is not known here. `flush`: whether reading or writing it empties the pipeline. */
static bool csr_read(const struct bt_core *core, uint32_t csr, uint64_t at, uint32_t *value, bool *flush)
{
    static const uint16_t known[] = {0x300, 0x305, 0x341, 0x342, 0x340, 0x304, 0x343, 0x320};
    *flush = csr == 0x300 || csr == 0x305 || csr == 0x341 || csr == 0x342 || csr == 0x320;
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (csr == known[i]) {
            *value = core->csr[i];
            return true;
        }
    }
    *value = 0;
    switch (csr) {
    case 0xf14: /* mhartid */
        *value = core->number;
        return true;
    case 0xb00: /* mcycle, cycle */
    case 0xc00:
        *value = (uint32_t)counter(core, at);
        *flush = true;
        return true;
    case 0xb80: /* their high words */
    case 0xc80:
        *value = (uint32_t)(counter(core, at) >> 32);
        *flush = true;
        return true;
    case 0xcc0: /* lpstart0 .. lpcount1 */
    case 0xcc4:
        *value = core->loop_start[csr >> 2 & 1u];
        return true;
    case 0xcc1:
    case 0xcc5:
        *value = core->loop_end[csr >> 2 & 1u];
        return true;
    case 0xcc2:
    case 0xcc6:
        *value = core->loop_count[csr >> 2 & 1u];
        return true;
    default:
        return false;
    }
}

static bool csr_write(struct bt_core *core, uint32_t csr, uint32_t value, uint64_t at)
{
    switch (csr) {
    case 0x320: { /* mcountinhibit: a bit stops mcycle */
        bool counts = (value & 1u) == 0;
        core->counter_base = counter(core, at + 1u);
        core->counter_at = at + 1u;
        core->counts = counts;
        core->csr[MCOUNTINHIBIT] = value & 0xdu;
        return true;
    }
    case 0xb00:
        core->counter_base = (counter(core, at + 1u) & ~0xffffffffull) | value;
        core->counter_at = at + 1u;
        return true;
    case 0x300:
        core->csr[MSTATUS] = 0x1800u | (value & 0x88u);
        return true;
    case 0x305:
        core->csr[MTVEC] = value & ~0xfeu;
        return true;
    case 0x340:
        core->csr[MSCRATCH] = value;
        return true;
    case 0x341:
        core->csr[MEPC] = value & ~1u;
        return true;
    case 0x342:
        core->csr[MCAUSE] = value & 0x8000001fu;
        return true;
    default:
        return false;
    }
}

static bool csr_op(struct bt_core *core, const struct bt_op *op, uint64_t at, bool *flush)
{
    uint32_t w = op->imm, csr = w >> 20, f3 = w >> 12 & 7u, old, field = w >> 15 & 31u;
    uint32_t with = (f3 & 4u) != 0 ? field : core->x[op->rs1];
    if (!csr_read(core, csr, at, &old, flush)) {
        return false;
    }
    uint32_t value = (f3 & 3u) == 1 ? with : (f3 & 3u) == 2 ? old | with : old & ~with;
    if (((f3 & 3u) == 1 || field != 0) && !csr_write(core, csr, value, at)) {
        return false;
    }
    core->x[op->rd] = old;
    return true;
}

/* Hardware loops: the manual's rules for a loop's body. ------------------------------------------------------------ */

static bool loop_keeps_rules(struct bt_cluster *c, const struct bt_core *core, unsigned which)
{
    uint32_t start = core->loop_start[which], end = core->loop_end[which];
    unsigned m = bt_memory_at(c, start);
    if ((start & 3u) != 0 || (end & 3u) != 0 || end < start + 12u || m == BT_MEMORIES || bt_memory_at(c, end - 4u) != m) {
        return false;
    }
    for (uint32_t pc = start; pc < end; pc += 4) {
        const struct bt_op *op = bt_op_at(c, m, pc);
        bool jumps = op->kind >= BT_JAL && op->kind <= BT_BNEIMM;
        if (op->size != 4 || jumps || op->kind == BT_FENCE || op->kind == BT_NOP || op->kind == BT_BAD) {
            return false;
        }
        if (op->kind == BT_LOOP && (op->imm >> 7 & 1u) == which) {
            return false;
        }
    }
    unsigned other = 1u - which;
    uint32_t inner = core->loop_end[0], outer = core->loop_end[1];
    bool nested = core->loop_count[other] != 0 && core->loop_start[1] <= core->loop_start[0] && inner <= outer;
    return !nested || outer >= inner + 8u;
}

static bool loop_op(struct bt_cluster *c, struct bt_core *core, struct bt_op *op, uint32_t pc)
{
    uint32_t w = op->imm, what = w >> 8 & 15u, which = w >> 7 & 1u, imm = w >> 20, from = core->x[op->rs1];
    switch (what) {
    case 0:
        core->loop_start[which] = pc + (imm << 2);
        break;
    case 1:
        core->loop_start[which] = from & ~3u;
        break;
    case 2:
        core->loop_end[which] = pc + (imm << 2);
        break;
    case 3:
        core->loop_end[which] = from & ~3u;
        break;
    case 4:
        core->loop_count[which] = imm;
        break;
    case 5:
        core->loop_count[which] = from;
        break;
    default:
        core->loop_start[which] = pc + 4u;
        core->loop_end[which] = pc + ((what == 6 ? op->rs1 : imm) << 2);
        core->loop_count[which] = what == 6 ? imm : from;
        break;
    }
    if (what < 4 || core->loop_count[which] == 0) {
        return (pc & 3u) == 0 || (what & 1u) != 0;
    }
    if (!op->checked) { /* a loop that is set up here is always the same, but by registers it seldom is not */
        if (!loop_keeps_rules(c, core, which) || (what >= 6 && (pc & 3u) != 0)) {
            return false;
        }
        op->checked = what >= 6;
        unsigned m = bt_memory_at(c, core->loop_end[which] - 4u);
        bt_op_at(c, m, core->loop_end[which] - 4u)->loop = true;
    }
    return true;
}

/* Division ----------------------------------------------------------------------------------------------------------- */

static uint32_t divided(uint32_t kind, uint32_t a, uint32_t b, uint32_t *stands)
{
    bool is_signed = kind == BT_DIV || kind == BT_REM, remainder = kind == BT_REM || kind == BT_REMU;
    bool negative = is_signed && (b >> 31) != 0;
    uint32_t magnitude = negative ? ~b : b;
    uint32_t zeros = magnitude != 0 ? (uint32_t)__builtin_clz(magnitude) : 32u;
    *stands = 2u + zeros - (negative ? 1u : 0u);
    if (b == 0) {
        return remainder ? a : 0xffffffffu;
    }
    if (is_signed) {
        if (a == 0x80000000u && b == 0xffffffffu) {
            return remainder ? 0 : a;
        }
        return (uint32_t)(remainder ? (int32_t)a % (int32_t)b : (int32_t)a / (int32_t)b);
    }
    return remainder ? a % b : a / b;
}

/* Memory, as seen by one core ---------------------------------------------------------------------------------------- */

struct access {
    uint32_t address, bytes, value; /* of a load, the value is what was read */
    bool write;
};

enum { DONE, AGAIN, BLOCKED, FAULTED };

static unsigned lanes(uint32_t address, uint32_t bytes)
{
    return ((1u << bytes) - 1u) << (address & 3u);
}

static void waited(struct bt_cluster *c, struct bt_core *core, uint32_t address, uint64_t at, uint64_t granted)
{
    const struct bt_config *k = &c->config;
    uint64_t cycles = granted - at;
    uint32_t channel;
    bool waits = false; /* and did not only write a register */
    if (bt_memory_at(c, address) != BT_MEMORIES) {
        core->wait.slow += cycles;
        return;
    }
    if (k->events != 0 && address - k->events < 16u) {
        channel = BT_AT_BARRIER;
        waits = true;
        core->wait.barrier += cycles;
    } else if (k->dma != 0 && address - k->dma < BT_DMA_WAIT + 4u * BT_CHANNELS) {
        channel = (address - k->dma - BT_DMA_WAIT) / 4u;
        waits = channel < BT_CHANNELS;
        core->wait.dma += cycles;
    } else {
        unsigned unit = bt_unit_at(c, address);
        channel = BT_CHANNELS + unit;
        waits = unit < BT_UNITS && address == k->unit[unit].base + 4u * (k->unit[unit].kind->start + 1u);
        core->wait.unit += cycles;
    }
    if (waits) {
        note_pause(c, core, channel, at, granted);
    }
}

/* Asks for one word in cycle `*at`, which becomes that of the grant; an access to two words needs two calls. */
static int ask(struct bt_cluster *c, struct bt_core *core, struct access *a, uint64_t *at)
{
    unsigned mask = lanes(a->address, a->bytes), shift = 8u * (a->address & 3u);
    bool two = mask > 15u;
    uint32_t address = core->halfway ? (a->address & ~3u) + 4u : a->address;
    uint32_t data = core->halfway ? a->value >> (32u - shift) : a->value << shift;
    int64_t granted = bt_access(c, core->number, *at, address, core->halfway ? mask >> 4 : mask & 15u, a->write, &data);
    if (granted == BT_RETRY) {
        core->wait.conflict++;
        core->stood++;
        core->at = *at + 1u;
        return AGAIN;
    }
    if (granted == BT_BLOCKED) {
        core->at = *at;
        return BLOCKED;
    }
    if (granted < 0) {
        return FAULTED;
    }
    waited(c, core, address, *at, (uint64_t)granted);
    core->stood += (uint32_t)((uint64_t)granted - *at);
    *at = (uint64_t)granted;
    if (two && !core->halfway) {
        core->halfway = true;
        core->half = data;
        core->stood++;
        core->at = *at + 1u;
        return AGAIN;
    }
    if (!a->write) {
        a->value = core->halfway ? core->half >> shift | data << (32u - shift) : data >> shift;
    }
    core->halfway = false;
    return DONE;
}

/* For a core that is alone: it has no conflicts. */
static int ask_alone(struct bt_cluster *c, struct bt_core *core, struct access *a, uint64_t *at)
{
    int answer = ask(c, core, a, at);
    while (answer == AGAIN) {
        *at = core->at;
        answer = ask(c, core, a, at);
    }
    return answer;
}

static uint32_t extended(uint32_t value, uint32_t bytes, bool is_signed)
{
    if (bytes == 4) {
        return value;
    }
    uint32_t shift = 32u - 8u * bytes;
    return is_signed ? (uint32_t)((int32_t)(value << shift) >> shift) : value << shift >> shift;
}

/* Instructions ------------------------------------------------------------------------------------------------------- */

static inline uint32_t dot4(uint32_t a, uint32_t b, bool sa, bool sb)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 32; i += 8) {
        int32_t left = sa ? (int8_t)(a >> i) : (uint8_t)(a >> i);
        int32_t right = sb ? (int8_t)(b >> i) : (uint8_t)(b >> i);
        sum += (uint32_t)(left * right);
    }
    return sum;
}

static inline uint32_t clipped(uint32_t value, int32_t low, int32_t high)
{
    int32_t v = (int32_t)value;
    return (uint32_t)(v <= low ? low : v >= high ? high : v);
}

static inline int32_t clip_bound(uint32_t width)
{
    return width == 0 ? 0 : (int32_t)((1u << (width - 1u)) - 1u);
}

#define LOAD_CASES(T, bytes_, signed_)                                                                                 \
    case BT_LOAD_##T:                                                                                                  \
        a = (struct access){x[op->rs1] + op->imm, bytes_, 0, false};                                                   \
        is_signed = signed_;                                                                                           \
        goto load;                                                                                                     \
    case BT_LOAD_##T##_POST:                                                                                           \
        a = (struct access){x[op->rs1], bytes_, 0, false};                                                             \
        base = a.address + op->imm;                                                                                    \
        is_signed = signed_;                                                                                           \
        goto load_post;                                                                                                \
    case BT_LOAD_##T##_POST_REG:                                                                                       \
        a = (struct access){x[op->rs1], bytes_, 0, false};                                                             \
        base = a.address + x[op->rs2];                                                                                 \
        is_signed = signed_;                                                                                           \
        goto load_post;                                                                                                \
    case BT_LOAD_##T##_REG:                                                                                            \
        a = (struct access){x[op->rs1] + x[op->rs2], bytes_, 0, false};                                                \
        is_signed = signed_;                                                                                           \
        goto load;

#define STORE_CASES(T, bytes_)                                                                                         \
    case BT_STORE_##T:                                                                                                 \
        a = (struct access){x[op->rs1] + op->imm, bytes_, x[op->rs2], true};                                           \
        goto store;                                                                                                    \
    case BT_STORE_##T##_POST:                                                                                          \
        a = (struct access){x[op->rs1], bytes_, x[op->rs2], true};                                                     \
        base = a.address + op->imm;                                                                                    \
        goto store_post;                                                                                               \
    case BT_STORE_##T##_POST_REG:                                                                                      \
        a = (struct access){x[op->rs1], bytes_, x[op->rs2], true};                                                     \
        base = a.address + x[op->rs3];                                                                                 \
        goto store_post;                                                                                               \
    case BT_STORE_##T##_REG:                                                                                           \
        a = (struct access){x[op->rs1] + x[op->rs3], bytes_, x[op->rs2], true};                                        \
        goto store;

#define ALU(kind_, value)                                                                                              \
    case kind_:                                                                                                        \
        x[op->rd] = (uint32_t)(value);                                                                                 \
        break;

#define BRANCH(kind_, condition)                                                                                       \
    case kind_:                                                                                                        \
        if (condition) {                                                                                               \
            target = op->imm;                                                                                          \
            ready = t + 2u;                                                                                            \
            goto jump;                                                                                                 \
        }                                                                                                              \
        break;

/* Runs a core: if it is alone, for a while; else its memory request of cycle `limit`, which has begun, and then all
 * instructions up to its next request. Instructions between two requests concern no other core. */
static inline __attribute__((always_inline)) int run_core(struct bt_cluster *c, struct bt_core *core, uint64_t limit,
                                                          const bool alone)
{
    uint32_t *x = core->x;
    uint64_t t = core->at, retired = core->retired, load_use = 0;
    uint32_t pc = core->pc, loaded = core->loaded, slack = core->slack;
    const struct bt_op *before = core->before, *before2 = core->before2;
    struct bt_op *op;
    unsigned m = bt_memory_at(c, pc);
    int result = BT_TIME;
    uint32_t base = 0, target = 0, stands = 0;
    uint64_t ready = 0;
    bool is_signed = false, posts = false;
    struct access a;

    if (m == BT_MEMORIES) {
        core->pc = pc;
        return stop(c, core, BT_NO_CODE, pc);
    }
    op = &c->ops[m][(pc - c->config.memory[m].origin) / 2u];
    for (;;) {
        uint64_t stall = op->reads >> loaded & 1u;
        t += stall;
        load_use += stall;
        retired++;
        stands = 0;
        uint32_t kind = op->kind;
    again:
        switch (kind) {
        case BT_UNDECODED:
            t -= stall;
            load_use -= stall;
            retired--;
            if (pc - c->config.memory[m].origin >= c->config.memory[m].size) {
                result = BT_FAULT;
                core->pc = pc;
                stop(c, core, BT_NO_CODE, pc);
                goto leave;
            }
            bt_op_at(c, m, pc);
            if (core->number == 0 && (pc == c->config.run || pc == c->config.returned) && pc != 0) {
                op->under = op->kind;
                op->kind = BT_MARK;
            }
            continue;
        case BT_MARK:
            if (core->number == 0) {
                core->wait.load_use += load_use - stall;
                load_use = stall;
                if (pc == c->config.run) {
                    begin(c, t - stall, retired - 1u);
                } else if (core->measured) {
                    finish(c, t - stall, retired - 1u);
                }
            }
            kind = op->under;
            goto again;

            ALU(BT_LI, op->imm)
            ALU(BT_ADDI, x[op->rs1] + op->imm)
            ALU(BT_SLTI, (int32_t)x[op->rs1] < (int32_t)op->imm)
            ALU(BT_SLTIU, x[op->rs1] < op->imm)
            ALU(BT_XORI, x[op->rs1] ^ op->imm)
            ALU(BT_ORI, x[op->rs1] | op->imm)
            ALU(BT_ANDI, x[op->rs1] & op->imm)
            ALU(BT_SLLI, x[op->rs1] << op->imm)
            ALU(BT_SRLI, x[op->rs1] >> op->imm)
            ALU(BT_SRAI, (int32_t)x[op->rs1] >> op->imm)
            ALU(BT_ADD, x[op->rs1] + x[op->rs2])
            ALU(BT_SUB, x[op->rs1] - x[op->rs2])
            ALU(BT_SLL, x[op->rs1] << (x[op->rs2] & 31u))
            ALU(BT_SLT, (int32_t)x[op->rs1] < (int32_t)x[op->rs2])
            ALU(BT_SLTU, x[op->rs1] < x[op->rs2])
            ALU(BT_XOR, x[op->rs1] ^ x[op->rs2])
            ALU(BT_SRL, x[op->rs1] >> (x[op->rs2] & 31u))
            ALU(BT_SRA, (int32_t)x[op->rs1] >> (x[op->rs2] & 31u))
            ALU(BT_OR, x[op->rs1] | x[op->rs2])
            ALU(BT_AND, x[op->rs1] & x[op->rs2])
            ALU(BT_MUL, x[op->rs1] * x[op->rs2])
            ALU(BT_MAC, x[op->rs3] + x[op->rs1] * x[op->rs2])
            ALU(BT_MSU, x[op->rs3] - x[op->rs1] * x[op->rs2])
            ALU(BT_MIN, (int32_t)x[op->rs1] < (int32_t)x[op->rs2] ? x[op->rs1] : x[op->rs2])
            ALU(BT_MAX, (int32_t)x[op->rs1] < (int32_t)x[op->rs2] ? x[op->rs2] : x[op->rs1])
            ALU(BT_MINU, x[op->rs1] < x[op->rs2] ? x[op->rs1] : x[op->rs2])
            ALU(BT_MAXU, x[op->rs1] < x[op->rs2] ? x[op->rs2] : x[op->rs1])
            ALU(BT_CLIP, clipped(x[op->rs1], -clip_bound(op->imm) - 1, clip_bound(op->imm)))
            ALU(BT_CLIPU, clipped(x[op->rs1], 0, clip_bound(op->imm)))
            ALU(BT_CLIPR, clipped(x[op->rs1], -(int32_t)(x[op->rs2] & 0x7fffffffu) - 1, (int32_t)(x[op->rs2] & 0x7fffffffu)))
            ALU(BT_CLIPUR, clipped(x[op->rs1], 0, (int32_t)(x[op->rs2] & 0x7fffffffu)))
            ALU(BT_EXTHS, (int16_t)x[op->rs1])
            ALU(BT_EXTHZ, (uint16_t)x[op->rs1])
            ALU(BT_EXTBS, (int8_t)x[op->rs1])
            ALU(BT_EXTBZ, (uint8_t)x[op->rs1])
            ALU(BT_ABS, (int32_t)x[op->rs1] < 0 ? -x[op->rs1] : x[op->rs1])
            ALU(BT_SLE, (int32_t)x[op->rs1] <= (int32_t)x[op->rs2])
            ALU(BT_SLEU, x[op->rs1] <= x[op->rs2])
            ALU(BT_ROR, x[op->rs1] >> (x[op->rs2] & 31u) | x[op->rs1] << (-x[op->rs2] & 31u))
            ALU(BT_FF1, x[op->rs1] == 0 ? 32 : __builtin_ctz(x[op->rs1]))
            ALU(BT_FL1, x[op->rs1] == 0 ? 32 : 31 - __builtin_clz(x[op->rs1]))
            ALU(BT_CLB, x[op->rs1] == 0 ? 0 : __builtin_clrsb((int)x[op->rs1]))
            ALU(BT_CNT, __builtin_popcount(x[op->rs1]))
            ALU(BT_BITS, bt_bits(op->imm, x[op->rs1], x[op->rs2], x[op->rs3]))
            ALU(BT_ADD_SHIFT, bt_add_shift(op->imm, x[op->rs1], x[op->rs2], x[op->rs3]))
            ALU(BT_MUL_SHIFT, bt_mul_shift(op->imm, x[op->rs1], x[op->rs2], x[op->rs3]))
            ALU(BT_SIMD, bt_simd(op->imm, x[op->rs1], x[op->rs2], x[op->rs3]))
            ALU(BT_SDOTSP_B, x[op->rs3] + dot4(x[op->rs1], x[op->rs2], true, true))
            ALU(BT_SDOTUSP_B, x[op->rs3] + dot4(x[op->rs1], x[op->rs2], false, true))
            ALU(BT_SDOTUP_B, x[op->rs3] + dot4(x[op->rs1], x[op->rs2], false, false))
            ALU(BT_SDOTSP_H, x[op->rs3] + (uint32_t)((int16_t)x[op->rs1] * (int16_t)x[op->rs2]) +
                                 (uint32_t)((int16_t)(x[op->rs1] >> 16) * (int16_t)(x[op->rs2] >> 16)))
        case BT_MULH:
            x[op->rd] = (uint32_t)((int64_t)(int32_t)x[op->rs1] * (int32_t)x[op->rs2] >> 32);
            stands = 4;
            break;
        case BT_MULHSU:
            x[op->rd] = (uint32_t)((int64_t)(int32_t)x[op->rs1] * (int64_t)x[op->rs2] >> 32);
            stands = 4;
            break;
        case BT_MULHU:
            x[op->rd] = (uint32_t)((uint64_t)x[op->rs1] * x[op->rs2] >> 32);
            stands = 4;
            break;
        case BT_DIV:
        case BT_DIVU:
        case BT_REM:
        case BT_REMU:
            x[op->rd] = divided(kind, x[op->rs1], x[op->rs2], &stands);
            break;

            LOAD_CASES(B, 1, true)
            LOAD_CASES(BU, 1, false)
            LOAD_CASES(H, 2, true)
            LOAD_CASES(HU, 2, false)
            LOAD_CASES(W, 4, false)
            STORE_CASES(B, 1)
            STORE_CASES(H, 2)
            STORE_CASES(W, 4)
        case BT_ELW:
            a = (struct access){x[op->rs1] + op->imm, 4, 0, false};
            goto load;

            BRANCH(BT_BEQ, x[op->rs1] == x[op->rs2])
            BRANCH(BT_BNE, x[op->rs1] != x[op->rs2])
            BRANCH(BT_BLT, (int32_t)x[op->rs1] < (int32_t)x[op->rs2])
            BRANCH(BT_BGE, (int32_t)x[op->rs1] >= (int32_t)x[op->rs2])
            BRANCH(BT_BLTU, x[op->rs1] < x[op->rs2])
            BRANCH(BT_BGEU, x[op->rs1] >= x[op->rs2])
            BRANCH(BT_BEQIMM, x[op->rs1] == (uint32_t)((int32_t)((uint32_t)op->rs2 << 27) >> 27))
            BRANCH(BT_BNEIMM, x[op->rs1] != (uint32_t)((int32_t)((uint32_t)op->rs2 << 27) >> 27))
        case BT_JAL:
            target = op->imm;
            x[op->rd] = pc + op->size;
            ready = t + 1u - (slack != 0 || stall != 0);
            goto jump;
        case BT_JALR: {
            target = (x[op->rs1] + op->imm) & ~1u;
            x[op->rd] = pc + op->size;
            uint64_t could = t - stall, jumps = could - 1u - slack; /* from the decode stage */
            if (op->rs1 != 0) {
                if (before2->loads == op->rs1 && (before->reads >> before2->loads & 1u) == 0 && jumps < could - slack) {
                    jumps = could - slack;
                }
                if (before->writes == op->rs1 && jumps < could) {
                    jumps = could;
                }
                if (before->loads == op->rs1) {
                    jumps = could + 1u;
                }
            }
            load_use += jumps + 1u > t ? jumps + 1u - t : 0;
            jumps += op->rs1 == op->rs3 && op->rs1 != 0 && jumps + 1u >= t; /* as if it waited for itself */
            ready = jumps + 2u > t ? jumps + 2u : t;
            goto jump;
        }
        case BT_CSR: {
            bool flush = false;
            if (!csr_op(core, op, t, &flush)) {
                goto bad;
            }
            if (flush) {
                t += FLUSH;
                before = before2 = bt_no_op();
                loaded = BT_ANY;
                slack = 0;
                t++;
                pc += op->size;
                op += op->size / 2u;
                continue;
            }
            break;
        }
        case BT_FENCE:
            target = pc + op->size;
            ready = t + FLUSH;
            goto jump;
        case BT_NOP:
            break;
        case BT_LOOP:
            if (!loop_op(c, core, op, pc)) {
                result = BT_FAULT;
                core->pc = pc;
                stop(c, core, BT_LOOP_RULE, pc);
                goto leave;
            }
            break;
        case BT_ECALL:
            result = BT_FAULT;
            core->pc = pc;
            stop(c, core, BT_STOPPED, pc);
            goto leave;
        default:
        bad:
            result = BT_FAULT;
            core->pc = pc;
            stop(c, core, BT_ILLEGAL, pc);
            goto leave;

        load_post:
            posts = true;
        load:
            if (alone && c->open == 0) {
                unsigned k = 0;
                uint32_t offset = a.address - c->config.memory[0].origin;
                if (offset >= c->config.memory[0].size) {
                    k = 1;
                    offset = a.address - c->config.memory[1].origin;
                }
                if (offset < c->config.memory[k].size && (offset & 3u) + a.bytes <= 4u && kind != BT_ELW) {
                    uint32_t word;
                    memcpy(&word, c->bytes[k] + offset, sizeof word);
                    a.value = word;
                    stands = c->config.memory[k].wait;
                    core->wait.slow += stands;
                    goto loaded_value;
                }
            }
            goto ask_memory;
        store_post:
            posts = true;
        store:
            if (alone && c->open == 0) {
                unsigned k = 0;
                uint32_t offset = a.address - c->config.memory[0].origin;
                if (offset >= c->config.memory[0].size) {
                    k = 1;
                    offset = a.address - c->config.memory[1].origin;
                }
                if (offset < c->config.memory[k].size && (offset & 3u) + a.bytes <= 4u) {
                    uint8_t *to = c->bytes[k] + offset;
                    if (a.bytes == 4) {
                        memcpy(to, &a.value, 4);
                    } else if (a.bytes == 2) {
                        memcpy(to, &a.value, 2);
                    } else {
                        *to = (uint8_t)a.value;
                    }
                    if (offset - c->code_from[k] < c->code_bytes[k]) {
                        bt_code_written(c, k, offset, a.bytes);
                    }
                    stands = c->config.memory[k].wait;
                    core->wait.slow += stands;
                    goto stored;
                }
            }
        ask_memory:
            core->pc = pc;
            if (!alone && t > limit) {
                loaded = BT_ANY; /* its stall is in t */
                posts = false;
                retired--;
                goto leave;
            }
            core->stood = alone ? 0 : core->stood;
            switch (alone ? ask_alone(c, core, &a, &t) : ask(c, core, &a, &t)) {
            case DONE:
                break;
            case AGAIN:
                t = core->at;
                loaded = BT_ANY;
                posts = false;
                retired--;
                goto leave;
            case BLOCKED:
                if (!alone) {
                    core->blocked = true;
                    loaded = BT_ANY;
                    posts = false;
                    retired--;
                    goto leave;
                }
                stop(c, core, BT_DEADLOCK, a.address);
                result = BT_FAULT;
                goto leave;
            default:
                result = BT_FAULT;
                goto leave;
            }
            stands = core->stood;
            core->stood = 0;
            t -= stands;
            if (c->polls > 1u) {
                limit = 0;
            }
            if (a.write) {
                goto stored;
            }
        loaded_value:
            if (posts) {
                x[op->rs1 == 0 ? BT_SINK : op->rs1] = base;
            }
            posts = false;
            x[op->rd] = extended(a.value, a.bytes, is_signed);
            if (kind == BT_ELW) {
                t += stands + FLUSH + 1u + (op->loads == op->rs1 && op->rs1 != 0);
                before = before2 = bt_no_op();
                loaded = BT_ANY;
                slack = 0;
                pc += op->size;
                op += op->size / 2u;
                continue;
            }
            break;
        stored:
            if (posts) {
                x[op->rs1 == 0 ? BT_SINK : op->rs1] = base;
            }
            posts = false;
            break;

        jump:
            if (core->measured) {
                core->wait.load_use += load_use;
                load_use = 0;
                moves(c, core, pc, target, pc + op->size, kind <= BT_JALR && op->rs3 != 0, ready + 1u, retired);
            }
            core->pc = pc;
            pc = target;
            if (pc - c->config.memory[m].origin >= c->config.memory[m].size) {
                m = bt_memory_at(c, pc);
                if (m == BT_MEMORIES) {
                    result = BT_FAULT;
                    stop(c, core, BT_NO_CODE, pc);
                    goto leave;
                }
            }
            /* One that has waited in the decode stage is followed at once, by what may need what it writes. */
            before2 = before;
            before = op;
            op = bt_op_at(c, m, pc);
            ready += (pc & 2u) != 0 && op->size == 4;
            if (ready != t) {
                before = before2 = bt_no_op();
            }
            t = ready + 1u;
            if (op->kind != BT_MARK && core->number == 0 && (pc == c->config.run || pc == c->config.returned) && pc != 0) {
                op->kind = BT_UNDECODED;
            }
            loaded = BT_ANY;
            slack = 0;
            if (t >= limit && (alone || t >= limit + RUN_AHEAD)) {
                goto leave;
            }
            continue;
        }
        t += 1u + stands;
        slack = stands;
        before2 = before;
        before = op;
        loaded = op->loads;
        uint32_t size = op->size;
        pc += size;
        if (op->loop) {
            unsigned which = core->loop_end[0] == pc && core->loop_count[0] != 0 ? 0 : 1;
            if (core->loop_end[which] == pc && core->loop_count[which] != 0 && --core->loop_count[which] != 0) {
                pc = core->loop_start[which];
                op = &c->ops[m][(pc - c->config.memory[m].origin) / 2u];
                continue;
            }
        }
        op += size / 2u;
    }
leave:
    core->at = t;
    core->retired = retired;
    core->pc = pc;
    core->loaded = loaded;
    core->slack = slack;
    core->before = before;
    core->before2 = before2;
    core->wait.load_use += load_use;
    return result;
}

static __attribute__((noinline)) int run_alone(struct bt_cluster *c, uint64_t limit)
{
    return run_core(c, &c->core[0], limit, true);
}

static __attribute__((noinline)) int run_shared(struct bt_cluster *c, struct bt_core *core, uint64_t limit)
{
    return run_core(c, core, limit, false);
}

/* The core whose time is next, and of those the one with priority in that cycle; NULL if all wait for an event. */
static struct bt_core *next_core(struct bt_cluster *c)
{
    struct bt_core *best = NULL;
    uint32_t n = c->config.cores, best_rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct bt_core *core = &c->core[i];
        if (core->blocked || (best != NULL && core->at > best->at)) {
            continue;
        }
        uint32_t rank = (i + n - (uint32_t)(core->at % n)) % n;
        if (best == NULL || core->at < best->at || rank < best_rank) {
            best = core;
            best_rank = rank;
        }
    }
    return best;
}

static void wake(struct bt_cluster *c, uint64_t at)
{
    c->woken = false;
    for (uint32_t i = 0; i < c->config.cores; i++) {
        struct bt_core *core = &c->core[i];
        slept_until(c, core, at);
        core->blocked = false;
    }
}

static int run_all(struct bt_cluster *c, uint64_t until)
{
    for (;;) {
        struct bt_core *core = next_core(c);
        if (core == NULL) {
            return stop(c, &c->core[0], BT_DEADLOCK, c->config.events);
        }
        if (core->at >= until || c->polls > 1u) {
            return BT_TIME;
        }
        uint64_t now = core->at;
        int result = run_shared(c, core, now);
        if (result == BT_FAULT) {
            return result;
        }
        if (c->woken) {
            wake(c, now);
        }
    }
}

int bt_cluster_run(struct bt_cluster *c, uint64_t cycles)
{
    uint64_t until = c->core[0].at + cycles;
    c->polls = 0;
    int result = c->config.cores == 1 && c->trace == NULL ? run_alone(c, until) : run_all(c, until);
    if (result == BT_FAULT) {
        return BT_FAULT;
    }
    if (c->out_bytes != 0) {
        return BT_HAS_OUTPUT;
    }
    return c->polls > 1u ? BT_WANTS_INPUT : BT_TIME;
}
