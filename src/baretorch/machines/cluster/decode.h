/* Instructions, decoded once: rv32imc and the CORE-V extensions (Xcv) of CV32E40P with COREV_PULP and COREV_CLUSTER. */
#ifndef BT_DECODE_H
#define BT_DECODE_H

#include "cluster.h"

/* `T` is a type of access: B, BU, H, HU, W. The address is rs1 + imm; rs1, which then grows by imm or rs2 (POST,
 * POST_REG); or rs1 + rs2 (REG). Of a store, rs2 is the value and rs3 the register that POST_REG and REG add. */
#define BT_MODES(F, T) F(T), F(T##_POST), F(T##_POST_REG), F(T##_REG)
#define BT_LOAD(T) BT_LOAD_##T
#define BT_STORE(T) BT_STORE_##T

enum bt_kind {
    BT_UNDECODED,
    BT_BAD,
    BT_MARK, /* the first or last instruction of what is measured; what it is, `under` says */
    BT_LI, BT_JAL, BT_JALR, BT_BEQ, BT_BNE, BT_BLT, BT_BGE, BT_BLTU, BT_BGEU, BT_BEQIMM, BT_BNEIMM,
    BT_MODES(BT_LOAD, B), BT_MODES(BT_LOAD, BU), BT_MODES(BT_LOAD, H), BT_MODES(BT_LOAD, HU), BT_MODES(BT_LOAD, W),
    BT_MODES(BT_STORE, B), BT_MODES(BT_STORE, H), BT_MODES(BT_STORE, W), BT_ELW,
    BT_ADDI, BT_SLTI, BT_SLTIU, BT_XORI, BT_ORI, BT_ANDI, BT_SLLI, BT_SRLI, BT_SRAI,
    BT_ADD, BT_SUB, BT_SLL, BT_SLT, BT_SLTU, BT_XOR, BT_SRL, BT_SRA, BT_OR, BT_AND,
    BT_MUL, BT_MULH, BT_MULHSU, BT_MULHU, BT_DIV, BT_DIVU, BT_REM, BT_REMU,
    BT_FENCE, BT_ECALL, BT_NOP, BT_CSR,
    BT_LOOP, /* imm >> 20: which fields; see core.c */
    BT_MAC, BT_MSU, BT_MIN, BT_MINU, BT_MAX, BT_MAXU, BT_CLIP, BT_CLIPU, BT_CLIPR, BT_CLIPUR, BT_EXTHS, BT_EXTHZ,
    BT_EXTBS, BT_EXTBZ, BT_ABS, BT_SLE, BT_SLEU, BT_ROR, BT_FF1, BT_FL1, BT_CLB, BT_CNT,
    BT_BITS,    /* extract, insert, clear, set, reverse: xcv.c */
    BT_ADD_SHIFT, /* add or subtract, round, shift */
    BT_MUL_SHIFT, /* halves: multiply or accumulate, round, shift */
    BT_SIMD, BT_SDOTSP_B, BT_SDOTSP_H, BT_SDOTUP_B, BT_SDOTUSP_B,
};

enum { BT_ANY = 32, BT_SINK = 32 }; /* no register; where x0 is written */

struct bt_op {
    uint16_t kind, under;
    uint8_t size;
    uint8_t rd, rs1, rs2, rs3; /* rs3 is rd as it is read; rd is BT_SINK instead of x0 */
    uint8_t loads;  /* the register that the load port writes; BT_ANY: none */
    uint8_t writes; /* what the other port writes */
    bool loop;      /* may be the last of a hardware loop */
    bool checked;   /* a hardware loop's setup whose loop keeps the rules */
    uint32_t imm;   /* of what is rare, the instruction itself */
    uint64_t reads; /* a bit each: registers that it reads or writes: their load by the instruction before makes it wait */
};

const struct bt_op *bt_no_op(void);
/* Decodes the instruction there. */
struct bt_op *bt_op_at(struct bt_cluster *c, unsigned memory, uint32_t pc);
/* Bytes have changed that may be code. */
void bt_code_written(struct bt_cluster *c, unsigned memory, uint32_t offset, uint32_t bytes);

/* xcv.c: what is not hot. */
uint32_t bt_bits(uint32_t instruction, uint32_t a, uint32_t b, uint32_t d);
uint32_t bt_add_shift(uint32_t instruction, uint32_t a, uint32_t b, uint32_t d);
uint32_t bt_mul_shift(uint32_t instruction, uint32_t a, uint32_t b, uint32_t d);
uint32_t bt_simd(uint32_t instruction, uint32_t a, uint32_t b, uint32_t d);
bool bt_simd_known(uint32_t instruction);

#endif
