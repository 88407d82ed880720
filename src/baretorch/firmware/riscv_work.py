"""What a RISC-V instruction does, and where a branch goes: RV32IMAFC."""

from __future__ import annotations

from baretorch.firmware.riscv import RA, Instruction, call_target
from baretorch.targets.kinds import Kind, Work

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


def work_of(i: Instruction) -> Work:
    """The kind of an instruction. What is not known is arithmetic, the most frequent kind."""
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


def target_of(i: Instruction) -> int | None:
    """Where a direct branch goes; None for calls and all other instructions."""
    w = i.word
    if i.size == 2:
        if w & 0xE003 == 0xA001:  # c.j is encoded as c.jal is, but for one bit
            return call_target(None, Instruction(i.address, 2, w ^ 0x8000))
        if w & 0xC003 == 0xC001:  # c.beqz, c.bnez
            offset = (w >> 12 & 1) << 8 | (w >> 5 & 3) << 6 | (w >> 2 & 1) << 5 | (w >> 10 & 3) << 3 | (w >> 3 & 3) << 1
            return i.address + _signed(offset, 9)
        return None
    if w & 0x7F == 0x63:
        offset = w >> 31 << 12 | (w >> 7 & 1) << 11 | (w >> 25 & 0x3F) << 5 | (w >> 8 & 15) << 1
        return i.address + _signed(offset, 13)
    if w & 0xFFF == 0x6F:
        return call_target(None, Instruction(i.address, 4, w | RA << 7))
    return None


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
