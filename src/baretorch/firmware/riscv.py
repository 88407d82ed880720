"""Decodes RV32IMAFC: calls, stack frames, branches, and the kind of an instruction. Other extensions count as
arithmetic.

Capstone is not used: version 5.0.9 does not decode 182 of the 3,818 instructions of KWS for cluster8, and takes
five times as long; 6.0.0a11 does not decode 16.
"""

from __future__ import annotations

from baretorch.firmware.instructions import Instruction, sign_extend
from baretorch.targets.cycles import Kind, Work

RA, SP = 1, 2
_JAL, _JALR, _AUIPC, _LUI, _ADDI, _OP = 0x6F, 0x67, 0x17, 0x37, 0x13, 0x33
_BY_OPCODE = {
    0x03: Kind.LOAD,
    0x07: Kind.LOAD,
    0x23: Kind.STORE,
    0x27: Kind.STORE,
    0x63: Kind.BRANCH,
    0x43: Kind.FLOAT_MULTIPLY_ADD,
    0x47: Kind.FLOAT_MULTIPLY_ADD,
    0x4B: Kind.FLOAT_MULTIPLY_ADD,
    0x4F: Kind.FLOAT_MULTIPLY_ADD,
}
_LOAD, _STORE, _BRANCH, _ALU = Kind.LOAD, Kind.STORE, Kind.BRANCH, Kind.ALU
_COMPRESSED = (  # by the lowest two bits, then by the highest three
    (_ALU, _LOAD, _LOAD, _LOAD, _ALU, _STORE, _STORE, _STORE),
    (_ALU, Kind.CALL, _ALU, _ALU, _ALU, _BRANCH, _BRANCH, _BRANCH),
    (_ALU, _LOAD, _LOAD, _LOAD, _ALU, _STORE, _STORE, _STORE),
)


def is_long(first: int) -> bool:
    """Report whether an instruction has four bytes."""
    return first & 3 == 3


def call_target(before: Instruction | None, i: Instruction) -> int | None:
    """Return the target of a call that leaves its return address in ra; None for other instructions and unknown
    targets."""
    w = i.word
    if i.size == 2:
        return i.address + _c_jal_offset(w) if w & 0xE003 == 0x2001 else None
    if w & 0x7F == _JAL and _rd(i) == RA:
        offset = (w >> 21 & 0x3FF) << 1 | (w >> 20 & 1) << 11 | (w >> 12 & 0xFF) << 12
        return i.address + offset - (w >> 31 << 20)
    is_call = w & 0x7F == _JALR and _rd(i) == RA
    if is_call and before is not None and before.word & 0x7F == _AUIPC and _rd(before) == _rs1(i):
        return (before.address + (before.word & 0xFFFFF000) + sign_extend(w >> 20, 12)) & 0xFFFFFFFF
    return None


def is_indirect_call(before: Instruction | None, i: Instruction) -> bool:
    """Report a call through a register whose value is not in the before instruction."""
    if i.size == 2:
        return i.word & 0xF07F == 0x9002 and i.word >> 7 & 31 != 0  # c.jalr
    return i.word & 0x7F == _JALR and _rd(i) == RA and call_target(before, i) is None


def stack_growth(before: Instruction | None, i: Instruction) -> int | None:
    """Return the bytes by which an instruction lowers the stack pointer; None if a register contains the number."""
    w, move = i.word, 0
    if _rd(i) != SP:
        return 0
    if i.size == 4:
        if w & 0x7F == _OP:
            return None
        loads_address = before is not None and before.word & 0x7F in (_AUIPC, _LUI) and _rd(before) == SP
        if w & 0x707F == _ADDI and _rs1(i) == SP and not loads_address:
            move = sign_extend(w >> 20, 12)
    elif w & 0xF003 == 0x9002:  # c.add
        return None
    elif w & 0xE003 == 0x6001:  # c.addi16sp
        bits = (w >> 12 & 1) << 9 | (w >> 3 & 3) << 7 | (w >> 5 & 1) << 6 | (w >> 2 & 1) << 5 | (w >> 6 & 1) << 4
        move = sign_extend(bits, 10)
    elif w & 0xE003 == 0x0001:  # c.addi
        move = sign_extend((w >> 12 & 1) << 5 | w >> 2 & 31, 6)
    return max(-move, 0)


def work_of(i: Instruction) -> Work:
    """Return the kind of an instruction. Unknown ones count as arithmetic, the most frequent kind."""
    w = i.word
    if i.size == 2 and is_long(w):  # the code ends within an instruction, as where a search began at the wrong half
        return Work(_ALU)
    if i.size == 2:
        if w & 0xE07F == 0x8002 and _rd(i):  # c.jr, c.jalr
            return Work(Kind.CALL if w & 0x1000 else Kind.RETURN)
        return Work(_COMPRESSED[w & 3][w >> 13])
    opcode = w & 0x7F
    if opcode == 0x6F:
        return Work(Kind.CALL if _rd(i) == RA else Kind.BRANCH)
    if opcode == 0x67:
        return Work(Kind.CALL if _rd(i) == RA else Kind.RETURN)
    if opcode == 0x33 and w >> 25 == 1:
        high = w >> 12 & 7
        return Work(Kind.MULTIPLY if high == 0 else Kind.MULTIPLY_LONG if high < 4 else Kind.DIVIDE)
    if opcode == 0x53:
        return Work(Kind.FLOAT_DIVIDE if w >> 27 in (0b00011, 0b01011) else Kind.FLOAT)
    return Work(_BY_OPCODE.get(opcode, Kind.ALU))


def jump_target(i: Instruction) -> int | None:
    """Return the target of a direct branch; None for calls and all other instructions."""
    w = i.word
    if i.size == 2:
        if w & 0xE003 == 0xA001:  # c.j is encoded as c.jal is, but for one bit
            return call_target(None, Instruction(i.address, 2, w ^ 0x8000))
        if w & 0xC003 == 0xC001:  # c.beqz, c.bnez
            offset = (w >> 12 & 1) << 8 | (w >> 5 & 3) << 6 | (w >> 2 & 1) << 5 | (w >> 10 & 3) << 3 | (w >> 3 & 3) << 1
            return i.address + sign_extend(offset, 9)
        return None
    if w & 0x7F == 0x63:
        offset = w >> 31 << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 0x3F) << 5 | (w >> 8 & 15) << 1
        return i.address + sign_extend(offset, 13)
    if w & 0xFFF == 0x6F:
        return call_target(None, Instruction(i.address, 4, w | RA << 7))
    return None


def _c_jal_offset(w: int) -> int:
    """Return the offset; its bits from bit 12 of the instruction down are 11, 4, 9:8, 10, 6, 7, 3:1, 5."""
    offset = (
        (w >> 12 & 1) << 11
        | (w >> 11 & 1) << 4
        | (w >> 9 & 3) << 8
        | (w >> 8 & 1) << 10
        | (w >> 7 & 1) << 6
        | (w >> 6 & 1) << 7
        | (w >> 3 & 7) << 1
        | (w >> 2 & 1) << 5
    )
    return sign_extend(offset, 12)


def _rd(i: Instruction) -> int:
    return i.word >> 7 & 31


def _rs1(i: Instruction) -> int:
    return i.word >> 15 & 31
