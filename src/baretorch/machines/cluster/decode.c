#include "decode.h"

#include <string.h>

/* Compressed instructions become the 32-bit ones that they stand for. */

static uint32_t bits(uint32_t word, unsigned high, unsigned low)
{
    return word >> low & ((2u << (high - low)) - 1u);
}

static uint32_t sign(uint32_t value, unsigned width)
{
    uint32_t top = 1u << (width - 1u);
    return (value ^ top) - top;
}

enum { ZERO = 0, RA = 1, SP = 2 };
enum { LOAD = 0x03, CUSTOM0 = 0x0b, OP_IMM = 0x13, AUIPC = 0x17, STORE = 0x23, CUSTOM1 = 0x2b, OP = 0x33, LUI = 0x37,
       CUSTOM2 = 0x5b, BRANCH = 0x63, JALR = 0x67, JAL = 0x6f, SYSTEM = 0x73, CUSTOM3 = 0x7b, FENCE = 0x0f };

static uint32_t r_type(uint32_t f7, uint32_t rs2, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t opcode)
{
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode;
}

static uint32_t i_type(uint32_t imm, uint32_t rs1, uint32_t f3, uint32_t rd, uint32_t opcode)
{
    return imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode;
}

static uint32_t s_type(uint32_t imm, uint32_t rs2, uint32_t rs1)
{
    return r_type(bits(imm, 11, 5), rs2, rs1, 2, bits(imm, 4, 0), STORE);
}

static uint32_t b_type(uint32_t imm, uint32_t rs1, uint32_t f3)
{
    return bits(imm, 12, 12) << 31 | bits(imm, 10, 5) << 25 | rs1 << 15 | f3 << 12 | bits(imm, 4, 1) << 8 |
           bits(imm, 11, 11) << 7 | BRANCH;
}

static uint32_t j_type(uint32_t imm, uint32_t rd)
{
    return bits(imm, 20, 20) << 31 | bits(imm, 10, 1) << 21 | bits(imm, 11, 11) << 20 | bits(imm, 19, 12) << 12 |
           rd << 7 | JAL;
}

static uint32_t quadrant0(uint32_t c)
{
    uint32_t rd = 8u + bits(c, 4, 2), rs1 = 8u + bits(c, 9, 7);
    uint32_t word = bits(c, 12, 10) << 3 | bits(c, 6, 6) << 2 | bits(c, 5, 5) << 6;
    uint32_t wide = bits(c, 10, 7) << 6 | bits(c, 12, 11) << 4 | bits(c, 5, 5) << 3 | bits(c, 6, 6) << 2;
    switch (bits(c, 15, 13)) {
    case 0:
        return wide != 0 ? i_type(wide, SP, 0, rd, OP_IMM) : 0;
    case 2:
        return i_type(word, rs1, 2, rd, LOAD);
    case 6:
        return s_type(word, rd, rs1);
    default:
        return 0;
    }
}

static uint32_t quadrant1(uint32_t c)
{
    uint32_t rd = bits(c, 11, 7), small = 8u + bits(c, 9, 7), other = 8u + bits(c, 4, 2);
    uint32_t imm = sign(bits(c, 12, 12) << 5 | bits(c, 6, 2), 6);
    uint32_t jump = sign(bits(c, 12, 12) << 11 | bits(c, 8, 8) << 10 | bits(c, 10, 9) << 8 | bits(c, 6, 6) << 7 |
                             bits(c, 7, 7) << 6 | bits(c, 2, 2) << 5 | bits(c, 11, 11) << 4 | bits(c, 5, 3) << 1,
                         12);
    uint32_t branch = sign(bits(c, 12, 12) << 8 | bits(c, 6, 5) << 6 | bits(c, 2, 2) << 5 | bits(c, 11, 10) << 3 |
                               bits(c, 4, 3) << 1,
                           9);
    static const uint32_t f7[] = {0x20, 0, 0, 0}, f3[] = {0, 4, 6, 7};
    switch (bits(c, 15, 13)) {
    case 0:
        return i_type(imm & 0xfffu, rd, 0, rd, OP_IMM);
    case 1:
        return j_type(jump, RA);
    case 2:
        return i_type(imm & 0xfffu, ZERO, 0, rd, OP_IMM);
    case 3:
        if (rd == SP) {
            uint32_t frame = sign(bits(c, 12, 12) << 9 | bits(c, 4, 3) << 7 | bits(c, 5, 5) << 6 |
                                      bits(c, 2, 2) << 5 | bits(c, 6, 6) << 4,
                                  10);
            return frame != 0 ? i_type(frame & 0xfffu, SP, 0, SP, OP_IMM) : 0;
        }
        return imm != 0 ? imm << 12 | rd << 7 | LUI : 0;
    case 4:
        switch (bits(c, 11, 10)) {
        case 0:
        case 1:
            if (bits(c, 12, 12) != 0) {
                return 0;
            }
            return r_type(bits(c, 10, 10) != 0 ? 0x20 : 0, bits(c, 6, 2), small, 5, small, OP_IMM);
        case 2:
            return i_type(imm & 0xfffu, small, 7, small, OP_IMM);
        default:
            if (bits(c, 12, 12) != 0) {
                return 0;
            }
            return r_type(f7[bits(c, 6, 5)], other, small, f3[bits(c, 6, 5)], small, OP);
        }
    case 5:
        return j_type(jump, ZERO);
    default:
        return b_type(branch, small, bits(c, 13, 13));
    }
}

static uint32_t quadrant2(uint32_t c)
{
    uint32_t rd = bits(c, 11, 7), rs2 = bits(c, 6, 2);
    uint32_t load = bits(c, 3, 2) << 6 | bits(c, 12, 12) << 5 | bits(c, 6, 4) << 2;
    uint32_t store = bits(c, 8, 7) << 6 | bits(c, 12, 9) << 2;
    switch (bits(c, 15, 13)) {
    case 0:
        return bits(c, 12, 12) == 0 ? r_type(0, rs2, rd, 1, rd, OP_IMM) : 0;
    case 2:
        return rd != 0 ? i_type(load, SP, 2, rd, LOAD) : 0;
    case 4:
        if (rs2 != 0) {
            return r_type(0, rs2, bits(c, 12, 12) != 0 ? rd : ZERO, 0, rd, OP);
        }
        if (rd == 0) {
            return bits(c, 12, 12) != 0 ? 0x00100073u : 0;
        }
        return i_type(0, rd, 0, bits(c, 12, 12) != 0 ? RA : ZERO, JALR);
    case 6:
        return s_type(store, rs2, SP);
    default:
        return 0;
    }
}

static uint32_t expanded(uint32_t c)
{
    switch (c & 3u) {
    case 0:
        return quadrant0(c);
    case 1:
        return quadrant1(c);
    default:
        return quadrant2(c);
    }
}

/* 32-bit instructions. `used` in the order of the core's read ports. */

static void reads(struct bt_op *op, uint32_t reg)
{
    op->reads |= (uint64_t)(reg != 0) << reg;
}

static void alu(struct bt_op *op, enum bt_kind kind, bool second)
{
    op->kind = (uint16_t)kind;
    op->writes = op->rd;
    reads(op, op->rs1);
    if (second) {
        reads(op, op->rs2);
    }
}

/* An instruction that reads rd too. */
static void accumulate(struct bt_op *op, enum bt_kind kind, bool second)
{
    alu(op, kind, second);
    reads(op, op->rd);
}

/* `mode` counts in the order of BT_MODES. */
static void load(struct bt_op *op, enum bt_kind first, unsigned mode)
{
    op->kind = (uint16_t)(first + mode);
    op->loads = op->rd;
    op->writes = mode == 1 || mode == 2 ? op->rs1 : BT_ANY;
    reads(op, op->rs1);
    if (mode >= 2) {
        reads(op, op->rs2);
    }
}

static void store(struct bt_op *op, enum bt_kind first, unsigned mode)
{
    op->kind = (uint16_t)(first + mode);
    op->writes = mode == 1 || mode == 2 ? op->rs1 : BT_ANY;
    reads(op, op->rs1);
    reads(op, op->rs2);
    if (mode >= 2) {
        reads(op, op->rd);
    }
}

static const uint16_t LOADS[] = {BT_LOAD_B, BT_LOAD_H, BT_LOAD_W, BT_BAD, BT_LOAD_BU, BT_LOAD_HU, BT_BAD, BT_BAD};
static const uint16_t STORES[] = {BT_STORE_B, BT_STORE_H, BT_STORE_W, BT_BAD};

static void op_imm(struct bt_op *op, uint32_t w)
{
    static const uint16_t kinds[] = {BT_ADDI, BT_SLLI, BT_SLTI, BT_SLTIU, BT_XORI, BT_SRLI, BT_ORI, BT_ANDI};
    uint32_t f3 = bits(w, 14, 12), f7 = bits(w, 31, 25);
    if ((f3 == 1 && f7 != 0) || (f3 == 5 && f7 != 0 && f7 != 0x20)) {
        return;
    }
    op->imm = sign(w >> 20, 12);
    if (f3 == 1 || f3 == 5) {
        op->imm = bits(w, 24, 20);
    }
    alu(op, f3 == 5 && f7 != 0 ? BT_SRAI : kinds[f3], false);
}

static void op_op(struct bt_op *op, uint32_t w)
{
    static const uint16_t plain[] = {BT_ADD, BT_SLL, BT_SLT, BT_SLTU, BT_XOR, BT_SRL, BT_OR, BT_AND};
    static const uint16_t products[] = {BT_MUL, BT_MULH, BT_MULHSU, BT_MULHU, BT_DIV, BT_DIVU, BT_REM, BT_REMU};
    uint32_t f3 = bits(w, 14, 12), f7 = bits(w, 31, 25);
    if (f7 == 0) {
        alu(op, plain[f3], true);
    } else if (f7 == 1) {
        alu(op, products[f3], true);
    } else if (f7 == 0x20 && (f3 == 0 || f3 == 5)) {
        alu(op, f3 == 0 ? BT_SUB : BT_SRA, true);
    }
}

static void custom0(struct bt_op *op, uint32_t w)
{
    uint32_t f3 = bits(w, 14, 12);
    if (f3 < 6 && f3 != 3 && LOADS[f3] != BT_BAD) {
        op->imm = sign(w >> 20, 12);
        load(op, LOADS[f3], 1);
    } else if (f3 == 3) {
        op->imm = sign(w >> 20, 12);
        load(op, BT_ELW, 0);
    } else if (f3 >= 6) {
        op->kind = f3 == 6 ? BT_BEQIMM : BT_BNEIMM;
        reads(op, op->rs1);
    }
}

static void plane_a(struct bt_op *op, uint32_t w)
{
    static const uint16_t general[32] = {
        [0x00] = BT_ROR, [0x01] = BT_FF1, [0x02] = BT_FL1, [0x03] = BT_CLB, [0x04] = BT_CNT, [0x08] = BT_ABS,
        [0x09] = BT_SLE, [0x0a] = BT_SLEU, [0x0b] = BT_MIN, [0x0c] = BT_MINU, [0x0d] = BT_MAX, [0x0e] = BT_MAXU,
        [0x10] = BT_EXTHS, [0x11] = BT_EXTHZ, [0x12] = BT_EXTBS, [0x13] = BT_EXTBZ, [0x18] = BT_CLIP,
        [0x19] = BT_CLIPU, [0x1a] = BT_CLIPR, [0x1b] = BT_CLIPUR,
    };
    uint32_t f7 = bits(w, 31, 25);
    unsigned mode = (f7 >> 2 & 1u) != 0 ? 3 : 2;
    if (f7 < 0x10) {
        uint32_t type = (f7 & 3u) | (f7 >> 1 & 4u);
        if (LOADS[type] != BT_BAD) {
            load(op, LOADS[type], mode);
        }
    } else if (f7 < 0x18) {
        if (STORES[f7 & 3u] != BT_BAD) {
            store(op, STORES[f7 & 3u], mode);
        }
    } else if (f7 < 0x20) {
        if (f7 != 0x1b && f7 < 0x1e) {
            alu(op, BT_BITS, true);
            if (f7 == 0x1a) {
                reads(op, op->rd);
            }
        }
    } else if (f7 < 0x40) {
        uint32_t which = f7 & 31u;
        bool one = (which >= 1 && which <= 4) || (which >= 0x10 && which <= 0x13);
        if (general[which] != 0 && !((one || which == 8) && op->rs2 != 0)) {
            alu(op, general[which], !one && which != 0x18 && which != 0x19);
            op->imm = op->rs2;
        }
    } else if (f7 < 0x48) {
        accumulate(op, BT_ADD_SHIFT, true);
    } else if (f7 == 0x48 || f7 == 0x49) {
        accumulate(op, f7 == 0x48 ? BT_MAC : BT_MSU, true);
    }
}

static void custom1(struct bt_op *op, uint32_t w)
{
    uint32_t f3 = bits(w, 14, 12);
    if (f3 < 3) {
        op->imm = sign(bits(w, 31, 25) << 5 | bits(w, 11, 7), 12);
        store(op, STORES[f3], 1);
    } else if (f3 == 3) {
        plane_a(op, w);
    } else if (f3 == 4 && bits(w, 11, 8) < 8) {
        uint32_t what = bits(w, 11, 8);
        bool by_register = (what & 1u) != 0;
        if (what >= 6 || (by_register ? w >> 20 == 0 : op->rs1 == 0)) {
            op->kind = BT_LOOP;
            if (by_register) {
                reads(op, op->rs1);
            }
        }
    }
}

static void custom2(struct bt_op *op, uint32_t w)
{
    uint32_t f3 = bits(w, 14, 12), f2 = w >> 30;
    if (f3 < 2) {
        bool insert = f3 == 0 && f2 == 2, reverse = f3 == 1 && f2 == 3 && bits(w, 29, 27) == 0;
        if (f2 < 2 || insert || reverse) {
            alu(op, BT_BITS, false);
            if (insert || reverse) {
                reads(op, op->rd);
            }
        }
    } else if (f3 < 4) {
        alu(op, BT_ADD_SHIFT, true);
    } else {
        alu(op, BT_MUL_SHIFT, true);
        if (f3 >= 6) {
            reads(op, op->rd);
        }
    }
}

static void custom3(struct bt_op *op, uint32_t w)
{
    if (!bt_simd_known(w)) {
        return;
    }
    uint32_t f3 = bits(w, 14, 12), f6 = bits(w, 31, 26);
    bool immediate = (f3 & 6u) == 6u, complex = f6 >= 0x15 && f6 <= 0x1d && (f6 & 1u) != 0;
    /* Shuffles by an immediate, and what extracts or inserts an element, mark the second port as used all the same. */
    bool second = !immediate || complex || (f6 >= 0x30 && f6 <= 0x36);
    if (f6 == 0x17) {
        second = false;
    }
    alu(op, BT_SIMD, second);
    bool third = (f6 >= 0x26 && f6 <= 0x2a) || f6 == 0x38 || f6 == 0x3e || f6 == 0x15 ||
                 (f6 == 0x2e && (f3 & 6u) == 4u);
    if (third) {
        reads(op, op->rd);
    }
    if (f6 == 0x2a && f3 < 2) {
        op->kind = f3 == 1 ? BT_SDOTSP_B : BT_SDOTSP_H;
    } else if (f6 == 0x26 && f3 == 1) {
        op->kind = BT_SDOTUP_B;
    } else if (f6 == 0x28 && f3 == 1) {
        op->kind = BT_SDOTUSP_B;
    }
}

static void system_op(struct bt_op *op, uint32_t w)
{
    uint32_t f3 = bits(w, 14, 12);
    if (w == 0x00000073u || w == 0x00100073u) {
        op->kind = BT_ECALL;
    } else if (w == 0x10500073u) {
        op->kind = BT_NOP; /* wfi: only cv.elw makes a core of a cluster sleep */
    } else if ((f3 & 3u) != 0) {
        op->kind = BT_CSR;
        op->writes = op->rd;
        if ((f3 & 4u) == 0) {
            reads(op, op->rs1);
        }
    }
}

static struct bt_op decoded(uint32_t w, uint32_t pc)
{
    struct bt_op op = {.kind = BT_BAD, .loads = BT_ANY, .writes = BT_ANY, .imm = w};
    op.rd = op.rs3 = (uint8_t)bits(w, 11, 7);
    op.rs1 = (uint8_t)bits(w, 19, 15);
    op.rs2 = (uint8_t)bits(w, 24, 20);
    uint32_t f3 = bits(w, 14, 12);
    switch (w & 0x7fu) {
    case LUI:
    case AUIPC:
        op.kind = BT_LI;
        op.writes = op.rd;
        op.imm = (w & 0xfffff000u) + ((w & 0x7fu) == AUIPC ? pc : 0u);
        break;
    case JAL:
        op.kind = BT_JAL;
        op.writes = op.rd;
        op.imm = pc + sign(bits(w, 31, 31) << 20 | bits(w, 19, 12) << 12 | bits(w, 20, 20) << 11 | bits(w, 30, 21) << 1,
                           21);
        break;
    case JALR:
        if (f3 == 0) {
            op.kind = BT_JALR;
            op.writes = op.rd;
            op.imm = sign(w >> 20, 12);
        }
        break;
    case BRANCH: {
        static const uint16_t kinds[] = {BT_BEQ, BT_BNE, BT_BAD, BT_BAD, BT_BLT, BT_BGE, BT_BLTU, BT_BGEU};
        op.kind = kinds[f3];
        reads(&op, op.rs1);
        reads(&op, op.rs2);
        break;
    }
    case LOAD:
        if (LOADS[f3] != BT_BAD) {
            op.imm = sign(w >> 20, 12);
            load(&op, LOADS[f3], 0);
        }
        break;
    case STORE:
        if (f3 < 3) {
            op.imm = sign(bits(w, 31, 25) << 5 | bits(w, 11, 7), 12);
            store(&op, STORES[f3], 0);
        }
        break;
    case OP_IMM:
        op_imm(&op, w);
        break;
    case OP:
        op_op(&op, w);
        break;
    case FENCE:
        if (f3 < 2) {
            op.kind = BT_FENCE;
        }
        break;
    case SYSTEM:
        system_op(&op, w);
        break;
    case CUSTOM0:
        custom0(&op, w);
        break;
    case CUSTOM1:
        custom1(&op, w);
        break;
    case CUSTOM2:
        custom2(&op, w);
        break;
    case CUSTOM3:
        custom3(&op, w);
        break;
    default:
        break;
    }
    if ((w & 0x7fu) == BRANCH || op.kind == BT_BEQIMM || op.kind == BT_BNEIMM) {
        op.imm = pc + sign(bits(w, 31, 31) << 12 | bits(w, 7, 7) << 11 | bits(w, 30, 25) << 5 | bits(w, 11, 8) << 1, 13);
    }
    if (op.writes != BT_ANY) {
        op.reads |= 1ull << op.writes; /* what is loaded later than this is written must not win; even of x0 */
    }
    return op;
}

struct bt_op *bt_op_at(struct bt_cluster *c, unsigned memory, uint32_t pc)
{
    uint32_t offset = pc - c->config.memory[memory].origin, w;
    struct bt_op *op = &c->ops[memory][offset / 2u];
    if (op->kind != BT_UNDECODED) {
        return op;
    }
    bool loop = op->loop;
    uint32_t from = c->code_from[memory], end = from + c->code_bytes[memory];
    from = from == end || offset < from ? offset : from;
    end = offset + 4u > end ? offset + 4u : end;
    c->code_from[memory] = from;
    c->code_bytes[memory] = end - from;
    memcpy(&w, c->bytes[memory] + offset, sizeof w);
    bool compressed = (w & 3u) != 3u;
    *op = decoded(compressed ? expanded(w & 0xffffu) : w, pc);
    op->size = compressed ? 2 : 4;
    op->loop = loop;
    if (op->rd == 0) {
        op->rd = BT_SINK;
    }
    return op;
}

void bt_code_written(struct bt_cluster *c, unsigned memory, uint32_t offset, uint32_t bytes)
{
    uint32_t from = c->code_from[memory], end = from + c->code_bytes[memory];
    uint32_t first = offset > from + 2u ? offset - 2u : from, last = offset + bytes < end ? offset + bytes : end;
    for (uint32_t i = first & ~1u; i < last; i += 2) {
        c->ops[memory][i / 2u].kind = BT_UNDECODED;
    }
}

const struct bt_op *bt_no_op(void)
{
    static const struct bt_op none = {.kind = BT_NOP, .loads = BT_ANY, .writes = BT_ANY, .size = 4};
    return &none;
}
