"""Decodes Thumb: calls, stack frames, branches, and the kind of an instruction, from Armv6-M to Armv8.1-M with Helium.

Capstone is not used: version 5.0.9 decodes neither Helium nor its loops, so it finds 3,409 instead of 3,025
instructions in KWS for mps3-an547, and takes six times as long; 6.0.0a11 does not decode 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from baretorch.targets.kinds import Kind, Work

_FPU = (9, 10, 11)  # coprocessor numbers: half, single, double precision


@dataclass(frozen=True)
class ThumbInstruction:
    address: int
    first: int  # halfword
    second: int | None

    @property
    def raw(self) -> bytes:
        return self.first.to_bytes(2, "little") + (b"" if self.second is None else self.second.to_bytes(2, "little"))


def instructions(code: bytes, address: int) -> Iterator[ThumbInstruction]:
    """Split code (without literal pools) into instructions of one or two halfwords."""
    at = 0
    while at + 2 <= len(code):
        first = int.from_bytes(code[at : at + 2], "little")
        wide = first >> 11 >= 0b11101 and at + 4 <= len(code)
        second = int.from_bytes(code[at + 2 : at + 4], "little") if wide else None
        yield ThumbInstruction(address + at, first, second)
        at += 4 if wide else 2


def branch_target(raw: bytes, address: int) -> int | None:
    """Return the target of BL and B.W; None for any other instruction."""
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:4], "little")
    if first >> 11 != 0b11110 or second & 0x9000 != 0x9000:
        return None
    sign = first >> 10 & 1
    i1, i2 = 1 ^ sign ^ (second >> 13 & 1), 1 ^ sign ^ (second >> 11 & 1)
    offset = i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    return (address + 4 + offset - (sign << 24)) & 0xFFFFFFFF


def is_call(raw: bytes) -> bool:
    """Report BL, as opposed to B.W."""
    second = int.from_bytes(raw[2:4], "little")
    return branch_target(raw, 0) is not None and bool(second & 0x4000)


def is_indirect_call(i: ThumbInstruction) -> bool:
    """Report BLX with a register (BLXNS too)."""
    return i.second is None and i.first & 0xFF80 == 0x4780


def move_immediate(raw: bytes) -> tuple[int, int]:
    """Return register and 16-bit value of MOVW or MOVT."""
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:4], "little")
    value = (first & 15) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    return second >> 8 & 15, value


def stack_growth(i: ThumbInstruction) -> int | None:
    """Return the bytes by which an instruction lowers the stack pointer; None if a register contains the number."""
    if i.second is None:
        if i.first & 0xFF87 == 0x4485:  # ADD SP, rm
            return None
        if i.first & 0xFE00 == 0xB400:  # PUSH
            return 4 * (i.first & 0x1FF).bit_count()
        if i.first & 0xFF80 == 0xB080:  # SUB SP, #
            return 4 * (i.first & 0x7F)
        return 0
    if i.first == 0xE92D:  # PUSH.W
        return 4 * i.second.bit_count()
    if i.first == 0xF84D and i.second & 0x0F00 == 0x0D00:  # STR rt, [SP, #-imm]!
        return i.second & 0xFF
    if i.first == 0xE96D:  # STRD …, [SP, #-imm]!
        return 4 * (i.second & 0xFF)
    if i.first == 0xEBAD and i.second & 0x0F00 == 0x0D00:  # SUB.W SP, SP, rm
        return None
    if i.first & 0xFFBF == 0xED2D:  # VPUSH
        return 4 * (i.second & 0xFF)
    if i.first & 0xFBEF == 0xF1AD and i.second & 0x8F00 == 0x0D00:  # SUB.W SP, SP, #modified constant
        return _expand((i.first >> 10 & 1) << 11 | (i.second >> 12 & 7) << 8 | i.second & 0xFF)
    if i.first & 0xFBFF == 0xF2AD and i.second & 0x8F00 == 0x0D00:  # SUBW SP, SP, #imm12
        return (i.first >> 10 & 1) << 11 | (i.second >> 12 & 7) << 8 | i.second & 0xFF
    return 0


def alignment(before: ThumbInstruction | None, i: ThumbInstruction) -> int:
    """Return the bytes by which SP may move where a function aligns it, as clang does for Helium vectors: MOV rd, SP,
    then BFC rd, #0, #bits, then SP is set to rd."""
    if before is None or before.second is not None or before.first & 0xFF78 != 0x4668:  # MOV rd, SP
        return 0
    register = before.first >> 4 & 8 | before.first & 7
    if i.first != 0xF36F or i.second is None or i.second & 0x7FC0 != register << 8:  # BFC rd, #0, …
        return 0
    return (2 << (i.second & 31)) - 4


def _expand(imm12: int) -> int:
    """Expand Thumb's modified constant: a repeated byte, or eight significant bits rotated."""
    byte = imm12 & 0xFF
    if imm12 >> 10 == 0:
        return byte * (0x1, 0x10001, 0x1000100, 0x1010101)[imm12 >> 8]
    value, rotation = 0x80 | imm12 & 0x7F, imm12 >> 7
    return (value >> rotation | value << (32 - rotation)) & 0xFFFFFFFF


def work_of(i: ThumbInstruction) -> Work:
    """Return the kind of an instruction. Unknown ones count as arithmetic, the most frequent kind."""
    return _narrow(i.first) if i.second is None else _wide(i.first, i.second)


def target_of(i: ThumbInstruction) -> int | None:
    """Return the target of a direct branch or a loop end; None for calls and all other instructions."""
    here, first, second = i.address + 4, i.first, i.second
    if second is None:
        if first >> 12 == 0b1101 and first >> 8 & 15 < 14:
            return here + 2 * _signed(first & 0xFF, 8)
        if first >> 11 == 0b11100:
            return here + 2 * _signed(first & 0x7FF, 11)
        if first & 0xF500 == 0xB100:  # CBZ, CBNZ: forward
            return here + ((first >> 9 & 1) << 6 | (first >> 3 & 31) << 1)
        return None
    if _is_loop_end(first, second):
        return here - ((second & 0x7FE) << 1 | (second >> 11 & 1) << 1)
    if first >> 11 == 0b11110 and second & 0xD000 == 0x8000 and first >> 6 & 15 < 14:
        offset = (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 | (first & 0x3F) << 12 | (second & 0x7FF) << 1
        return here + _signed((first >> 10 & 1) << 20 | offset, 21)
    return None if second & 0x4000 else branch_target(i.raw, i.address)


def _narrow(op: int) -> Work:
    top = op >> 10
    if top < 0b010000:
        return Work(Kind.ALU)
    if top == 0b010000:
        return Work(Kind.MULTIPLY if op >> 6 & 15 == 13 else Kind.ALU)
    if top == 0b010001:
        if op & 0xFF00 == 0x4700:
            return Work(Kind.CALL_BY_REGISTER if op & 0x80 else Kind.RETURN)
        return Work(Kind.RETURN if op & 0xFD87 == 0x4487 else Kind.ALU)  # ADD PC, MOV PC
    if top < 0b010100:
        return Work(Kind.LOAD)  # literal
    if top < 0b011000:
        return Work(Kind.STORE if op >> 9 & 7 < 3 else Kind.LOAD)
    if top < 0b101000:
        return Work(Kind.LOAD if op & 0x800 else Kind.STORE)
    if op & 0xFE00 == 0xB400:
        return Work(Kind.STORE_MANY, (op & 0x1FF).bit_count())
    if op & 0xFE00 == 0xBC00:
        return Work(Kind.LOAD_MANY, (op & 0x1FF).bit_count())
    if op & 0xF500 == 0xB100 or op >> 12 == 0b1101 or op >> 11 == 0b11100:
        return Work(Kind.BRANCH)
    if op >> 12 == 0b1100:
        return Work(Kind.LOAD_MANY if op & 0x800 else Kind.STORE_MANY, (op & 0xFF).bit_count())
    return Work(Kind.ALU)


def _wide(first: int, second: int) -> Work:
    if first & 0xEC00 == 0xEC00:
        return _coprocessor(first, second)
    load = bool(first & 0x10)
    if first >> 9 == 0b1110100:
        return _several(first, second, load)
    if first >> 11 == 0b11110 and second & 0x8000:
        return _control(first, second)
    if first >> 9 == 0b1111100:
        return Work(Kind.LOAD if load else Kind.STORE)
    if first >> 7 == 0b111110110:
        return Work(Kind.MULTIPLY)
    if first >> 7 == 0b111110111:
        return Work(Kind.DIVIDE if first >> 4 & 7 in (1, 3) else Kind.MULTIPLY_LONG)
    return Work(Kind.ALU)


def _several(first: int, second: int, load: bool) -> Work:
    """Decode LDM, STM, LDRD, STRD, table branches and exclusives."""
    if first & 0x40 == 0:
        return Work(Kind.LOAD_MANY if load else Kind.STORE_MANY, second.bit_count())
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:  # TBB, TBH
        return Work(Kind.RETURN)
    if first & 0x120:
        return Work(Kind.LOAD_MANY if load else Kind.STORE_MANY, 2)
    return Work(Kind.LOAD if load else Kind.STORE)


def _control(first: int, second: int) -> Work:
    if second & 0xD000 == 0xD000:
        return Work(Kind.CALL)
    if second & 0xD000 == 0x9000:
        return Work(Kind.BRANCH)
    if _is_loop_end(first, second):
        return Work(Kind.LOOP_END)
    if second & 0xD000 == 0xC000:  # DLS, WLS: the first is no jump, and the second jumps only past empty loops
        return Work(Kind.ALU)
    return Work(Kind.BRANCH if first >> 6 & 15 < 14 else Kind.ALU)


def _is_loop_end(first: int, second: int) -> bool:
    return first & 0xFFCF == 0xF00F and second & 0xF001 == 0xC001


def _coprocessor(first: int, second: int) -> Work:
    number, load = second >> 8 & 15, bool(first & 0x10)
    space = first >> 8 & 3
    if space == 3:
        return Work(Kind.VECTOR)
    if space < 2:
        if first & 0xFFE0 == 0xEC40:  # to or from two core registers
            return Work(Kind.FLOAT)
        if number not in _FPU:
            return Work(Kind.VECTOR_LOAD if load else Kind.VECTOR_STORE)
        if first & 0x0120 == 0x0100:
            return Work(Kind.LOAD if load else Kind.STORE)
        return Work(Kind.LOAD_MANY if load else Kind.STORE_MANY, second & 0xFF)
    if number not in _FPU:
        return Work(Kind.VECTOR)
    if second & 0x10 or first >> 12 == 0b1111:
        return Work(Kind.FLOAT)
    what = first >> 4 & 0b1011
    if what == 8 or (what == 11 and first & 15 == 1 and second & 0xC0 == 0xC0):  # VDIV, VSQRT
        return Work(Kind.FLOAT_DIVIDE)
    return Work(Kind.FLOAT_MULTIPLY_ADD if what in (0, 1, 9, 10) else Kind.FLOAT)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
