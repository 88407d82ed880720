"""Decodes RV32IMAFC: calls, stack frames, branches, and the kind of an instruction. Other extensions count as
arithmetic.

Capstone is not used: version 5.0.9 does not decode 182 of the 3,818 instructions of KWS for cluster8, and takes
five times as long; 6.0.0a11 does not decode 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baretorch.targets.kinds import Kind, Work

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


@dataclass(frozen=True)
class RiscvInstruction:
    address: int
    size: int
    word: int

    @property
    def rd(self) -> int:
        return self.word >> 7 & 31

    @property
    def rs1(self) -> int:
        return self.word >> 15 & 31


def instructions(code: bytes, address: int) -> Iterator[RiscvInstruction]:
    """Split code into instructions of two or four bytes."""
    at = 0
    while at + 2 <= len(code):
        size = 4 if code[at] & 3 == 3 and at + 4 <= len(code) else 2
        yield RiscvInstruction(address + at, size, int.from_bytes(code[at : at + size], "little"))
        at += size


def call_target(previous: RiscvInstruction | None, i: RiscvInstruction) -> int | None:
    """Return the target of a call that leaves its return address in ra; None for other instructions and unknown
    targets."""
    w = i.word
    if i.size == 2:
        return i.address + _c_jal_offset(w) if w & 0xE003 == 0x2001 else None
    if w & 0x7F == _JAL and i.rd == RA:
        offset = (w >> 21 & 0x3FF) << 1 | (w >> 20 & 1) << 11 | (w >> 12 & 0xFF) << 12
        return i.address + offset - (w >> 31 << 20)
    is_call = w & 0x7F == _JALR and i.rd == RA
    if is_call and previous is not None and previous.word & 0x7F == _AUIPC and previous.rd == i.rs1:
        return (previous.address + (previous.word & 0xFFFFF000) + _signed(w >> 20, 12)) & 0xFFFFFFFF
    return None


def is_indirect_call(previous: RiscvInstruction | None, i: RiscvInstruction) -> bool:
    """Report a call through a register whose value is not in the previous instruction."""
    if i.size == 2:
        return i.word & 0xF07F == 0x9002 and i.word >> 7 & 31 != 0  # c.jalr
    return i.word & 0x7F == _JALR and i.rd == RA and call_target(previous, i) is None


def stack_growth(previous: RiscvInstruction | None, i: RiscvInstruction) -> int | None:
    """Return the bytes by which an instruction lowers the stack pointer; None if a register contains the number."""
    w, move = i.word, 0
    if i.rd != SP:
        return 0
    if i.size == 4:
        if w & 0x7F == _OP:
            return None
        loads_address = previous is not None and previous.word & 0x7F in (_AUIPC, _LUI) and previous.rd == SP
        if w & 0x707F == _ADDI and i.rs1 == SP and not loads_address:
            move = _signed(w >> 20, 12)
    elif w & 0xF003 == 0x9002:  # c.add
        return None
    elif w & 0xE003 == 0x6001:  # c.addi16sp
        bits = (w >> 12 & 1) << 9 | (w >> 3 & 3) << 7 | (w >> 5 & 1) << 6 | (w >> 2 & 1) << 5 | (w >> 6 & 1) << 4
        move = _signed(bits, 10)
    elif w & 0xE003 == 0x0001:  # c.addi
        move = _signed((w >> 12 & 1) << 5 | w >> 2 & 31, 6)
    return max(-move, 0)


def work_of(i: RiscvInstruction) -> Work:
    """Return the kind of an instruction. Unknown ones count as arithmetic, the most frequent kind."""
    w = i.word
    if i.size == 2:
        if w & 0xE07F == 0x8002 and i.rd:  # c.jr, c.jalr
            return Work(Kind.CALL if w & 0x1000 else Kind.RETURN)
        return Work(_COMPRESSED[w & 3][w >> 13])
    opcode = w & 0x7F
    if opcode == 0x6F:
        return Work(Kind.CALL if i.rd == RA else Kind.BRANCH)
    if opcode == 0x67:
        return Work(Kind.CALL if i.rd == RA else Kind.RETURN)
    if opcode == 0x33 and w >> 25 == 1:
        high = w >> 12 & 7
        return Work(Kind.MULTIPLY if high == 0 else Kind.MULTIPLY_LONG if high < 4 else Kind.DIVIDE)
    if opcode == 0x53:
        return Work(Kind.FLOAT_DIVIDE if w >> 27 in (0b00011, 0b01011) else Kind.FLOAT)
    return Work(_BY_OPCODE.get(opcode, Kind.ALU))


def target_of(i: RiscvInstruction) -> int | None:
    """Return the target of a direct branch; None for calls and all other instructions."""
    w = i.word
    if i.size == 2:
        if w & 0xE003 == 0xA001:  # c.j is encoded as c.jal is, but for one bit
            return call_target(None, RiscvInstruction(i.address, 2, w ^ 0x8000))
        if w & 0xC003 == 0xC001:  # c.beqz, c.bnez
            offset = (w >> 12 & 1) << 8 | (w >> 5 & 3) << 6 | (w >> 2 & 1) << 5 | (w >> 10 & 3) << 3 | (w >> 3 & 3) << 1
            return i.address + _signed(offset, 9)
        return None
    if w & 0x7F == 0x63:
        offset = w >> 31 << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 0x3F) << 5 | (w >> 8 & 15) << 1
        return i.address + _signed(offset, 13)
    if w & 0xFFF == 0x6F:
        return call_target(None, RiscvInstruction(i.address, 4, w | RA << 7))
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
    return _signed(offset, 12)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
