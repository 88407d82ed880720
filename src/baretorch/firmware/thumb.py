"""Just enough of Arm's Thumb encoding to follow calls and to add up stack frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    address: int
    first: int  # halfword
    second: int | None

    @property
    def raw(self) -> bytes:
        return self.first.to_bytes(2, "little") + (b"" if self.second is None else self.second.to_bytes(2, "little"))


def instructions(code: bytes, address: int) -> Iterator[Instruction]:
    """Splits code (no literal pools in it) into instructions of one or two halfwords."""
    at = 0
    while at + 2 <= len(code):
        first = int.from_bytes(code[at : at + 2], "little")
        wide = first >> 11 >= 0b11101 and at + 4 <= len(code)
        second = int.from_bytes(code[at + 2 : at + 4], "little") if wide else None
        yield Instruction(address + at, first, second)
        at += 4 if wide else 2


def branch_target(raw: bytes, address: int) -> int | None:
    """Where BL and B.W go; None for any other instruction."""
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:4], "little")
    if first >> 11 != 0b11110 or second & 0x9000 != 0x9000:
        return None
    sign = first >> 10 & 1
    i1, i2 = 1 ^ sign ^ (second >> 13 & 1), 1 ^ sign ^ (second >> 11 & 1)
    offset = i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    return (address + 4 + offset - (sign << 24)) & 0xFFFFFFFF


def is_call(raw: bytes) -> bool:
    """BL, as opposed to B.W."""
    second = int.from_bytes(raw[2:4], "little")
    return branch_target(raw, 0) is not None and bool(second & 0x4000)


def is_indirect_call(i: Instruction) -> bool:
    """BLX with a register (BLXNS too)."""
    return i.second is None and i.first & 0xFF80 == 0x4780


def move_immediate(raw: bytes) -> tuple[int, int]:
    """Register and 16-bit value of MOVW or MOVT."""
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:4], "little")
    value = (first & 15) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    return second >> 8 & 15, value


def stack_growth(i: Instruction) -> int | None:
    """Bytes by which an instruction moves the stack pointer down; None if a register says how many."""
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


def alignment(before: Instruction | None, i: Instruction) -> int:
    """Bytes by which SP may move down where a function aligns it, as clang does for vectors of Helium: MOV rd, SP, then
    BFC rd, #0, #bits, and SP is given that."""
    if before is None or before.second is not None or before.first & 0xFF78 != 0x4668:  # MOV rd, SP
        return 0
    register = before.first >> 4 & 8 | before.first & 7
    if i.first != 0xF36F or i.second is None or i.second & 0x7FC0 != register << 8:  # BFC rd, #0, …
        return 0
    return (2 << (i.second & 31)) - 4


def _expand(imm12: int) -> int:
    """Thumb's modified constant: a byte repeated, or eight significant bits rotated."""
    byte = imm12 & 0xFF
    if imm12 >> 10 == 0:
        return byte * (0x1, 0x10001, 0x1000100, 0x1010101)[imm12 >> 8]
    value, rotation = 0x80 | imm12 & 0x7F, imm12 >> 7
    return (value >> rotation | value << (32 - rotation)) & 0xFFFFFFFF
