"""Decodes Thumb: calls, stack frames, branches, and the kind of an instruction, from Armv6-M to Armv8.1-M with Helium.

Capstone is not used: version 5.0.9 decodes neither Helium nor its loops, so it finds 3,409 instead of 3,025
instructions in KWS for mps3-an547, and takes six times as long; 6.0.0a11 does not decode 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from baretorch.firmware.instructions import Instruction, sign_extend
from baretorch.targets.cycles import Kind, Work

_FPU = (9, 10, 11)  # coprocessor numbers: half, single, double precision
Register = Callable[[int], int]  # returns the value of a register


def is_long(first: int) -> bool:
    """Report whether an instruction has two halfwords."""
    return first >> 11 >= 0b11101


def branch_target(i: Instruction) -> int | None:
    """Return the target of BL and B.W; None for any other instruction."""
    first, second = i.first, i.second
    if first >> 11 != 0b11110 or second & 0x9000 != 0x9000:
        return None
    sign = first >> 10 & 1
    i1, i2 = 1 ^ sign ^ (second >> 13 & 1), 1 ^ sign ^ (second >> 11 & 1)
    offset = i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    return (i.address + 4 + offset - (sign << 24)) & 0xFFFFFFFF


def call_target(before: Instruction | None, i: Instruction) -> int | None:
    """Return the target of BL; None for any other instruction."""
    return branch_target(i) if i.second & 0x4000 else None


def is_indirect_call(before: Instruction | None, i: Instruction) -> bool:
    """Report BLX with a register (BLXNS too)."""
    return i.size == 2 and i.first & 0xFF80 == 0x4780


def move_immediate(word: int) -> tuple[int, int]:
    """Return register and 16-bit value of MOVW or MOVT."""
    first, second = word & 0xFFFF, word >> 16
    value = (first & 15) << 12 | (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    return second >> 8 & 15, value


def stack_growth(before: Instruction | None, i: Instruction) -> int | None:
    """Return the bytes by which an instruction lowers the stack pointer; None if a register contains the number."""
    first, second = i.first, i.second
    if i.size == 2:
        if first & 0xFF87 == 0x4485:  # ADD SP, rm
            return None
        if first & 0xFE00 == 0xB400:  # PUSH
            return 4 * (first & 0x1FF).bit_count()
        if first & 0xFF80 == 0xB080:  # SUB SP, #
            return 4 * (first & 0x7F)
        return 0
    if first == 0xE92D:  # PUSH.W
        return 4 * second.bit_count()
    if first == 0xF84D and second & 0x0F00 == 0x0D00:  # STR rt, [SP, #-imm]!
        return second & 0xFF
    if first == 0xE96D:  # STRD …, [SP, #-imm]!
        return 4 * (second & 0xFF)
    if first == 0xEBAD and second & 0x0F00 == 0x0D00:  # SUB.W SP, SP, rm
        return None
    if first & 0xFFBF == 0xED2D:  # VPUSH
        return 4 * (second & 0xFF)
    if first & 0xFBEF == 0xF1AD and second & 0x8F00 == 0x0D00:  # SUB.W SP, SP, #modified constant
        return _expand((first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF)
    if first & 0xFBFF == 0xF2AD and second & 0x8F00 == 0x0D00:  # SUBW SP, SP, #imm12
        return (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    return _alignment(before, i)


def _alignment(before: Instruction | None, i: Instruction) -> int:
    """Return the bytes by which SP may move where a function aligns it, as clang does for Helium vectors: MOV rd, SP,
    then BFC rd, #0, #bits, then SP is set to rd."""
    if before is None or before.size == 4 or before.first & 0xFF78 != 0x4668:  # MOV rd, SP
        return 0
    register = before.first >> 4 & 8 | before.first & 7
    if i.first != 0xF36F or i.second & 0x7FC0 != register << 8:  # BFC rd, #0, …
        return 0
    return (2 << (i.second & 31)) - 4


def _expand(imm12: int) -> int:
    """Expand Thumb's modified constant: a repeated byte, or eight significant bits rotated."""
    byte = imm12 & 0xFF
    if imm12 >> 10 == 0:
        return byte * (0x1, 0x10001, 0x1000100, 0x1010101)[imm12 >> 8]
    value, rotation = 0x80 | imm12 & 0x7F, imm12 >> 7
    return (value >> rotation | value << (32 - rotation)) & 0xFFFFFFFF


def work_of(i: Instruction) -> Work:
    """Return the kind of an instruction. Unknown ones count as arithmetic, the most frequent kind."""
    return _narrow(i.first) if i.size == 2 else _wide(i.first, i.second)


def jump_target(i: Instruction) -> int | None:
    """Return the target of a direct branch or a loop end; None for calls and all other instructions."""
    here, first, second = i.address + 4, i.first, i.second
    if i.size == 2:
        if first >> 12 == 0b1101 and first >> 8 & 15 < 14:
            return here + 2 * sign_extend(first & 0xFF, 8)
        if first >> 11 == 0b11100:
            return here + 2 * sign_extend(first & 0x7FF, 11)
        if first & 0xF500 == 0xB100:  # CBZ, CBNZ: forward
            return here + ((first >> 9 & 1) << 6 | (first >> 3 & 31) << 1)
        return None
    if _is_loop_end(first, second):
        return here - ((second & 0x7FE) << 1 | (second >> 11 & 1) << 1)
    if first >> 11 == 0b11110 and second & 0xD000 == 0x8000 and first >> 6 & 15 < 14:
        offset = (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 | (first & 0x3F) << 12 | (second & 0x7FF) << 1
        return here + sign_extend((first >> 10 & 1) << 20 | offset, 21)
    return None if second & 0x4000 else branch_target(i)


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


@dataclass(frozen=True)
class Transfer:
    """A load or store of one register. `back` is a register that the instruction changes as well, and its new value."""

    load: bool
    register: int
    address: int
    size: int  # bytes moved
    length: int  # bytes of the instruction
    back: tuple[int, int] | None = None


def decode_transfer(code: bytes, register: Register) -> Transfer | None:
    """Decode the first instruction of `code`; None unless it moves one register to or from memory."""
    first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:4], "little")
    if is_long(first):
        return _long_transfer(first, second, register)
    return _short_transfer(first, register)


def _short_transfer(word: int, register: Register) -> Transfer | None:
    target, base = word & 7, register(word >> 3 & 7)
    kind, number = word >> 11, word >> 6 & 0x1F
    sizes = {0b0110: 4, 0b0111: 1, 0b1000: 2}
    if kind >> 1 in sizes:
        size = sizes[kind >> 1]
        return Transfer(bool(kind & 1), target, base + number * size & 0xFFFFFFFF, size, 2)
    if word >> 12 == 0b0101:
        size, load = ((4, False), (2, False), (1, False), (1, True), (4, True), (2, True), (1, True), (2, True))[
            word >> 9 & 7
        ]
        return Transfer(load, target, base + register(word >> 6 & 7) & 0xFFFFFFFF, size, 2)
    return None


def _long_transfer(first: int, second: int, register: Register) -> Transfer | None:
    """Decode STR.W and LDR.W, and their forms for bytes and halfwords."""
    if first >> 9 != 0b1111100 or (first >> 8 & 1 and not first >> 4 & 1):
        return None
    sizes = {0: 1, 1: 2, 2: 4}
    number = first >> 5 & 3
    if number not in sizes or first & 0xF == 15:
        return None
    load, base, target = bool(first >> 4 & 1), first & 0xF, second >> 12
    begin = register(base)
    if first >> 7 & 1:
        return Transfer(load, target, begin + (second & 0xFFF) & 0xFFFFFFFF, sizes[number], 4)
    if second >> 11 & 1:
        offset = (second & 0xFF) * (1 if second >> 9 & 1 else -1)
        moved = begin + offset & 0xFFFFFFFF
        back = (base, moved) if second >> 8 & 1 else None
        return Transfer(load, target, moved if second >> 10 & 1 else begin, sizes[number], 4, back)
    if second >> 6 & 0x1F == 0:
        offset = register(second & 0xF) << (second >> 4 & 3)
        return Transfer(load, target, begin + offset & 0xFFFFFFFF, sizes[number], 4)
    return None
