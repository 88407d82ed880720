"""What a Thumb instruction does, and where a branch goes: Armv6-M to Armv8.1-M, with FPU and Helium."""

from __future__ import annotations

from baretorch.firmware.thumb import Instruction, branch_target
from baretorch.targets.kinds import Kind, Work

_FPU = (9, 10, 11)  # coprocessor numbers: half, single, double precision


def work_of(i: Instruction) -> Work:
    """The kind of an instruction. What is not known is arithmetic, the most frequent kind."""
    return _narrow(i.first) if i.second is None else _wide(i.first, i.second)


def target_of(i: Instruction) -> int | None:
    """Where a direct branch or a loop end goes; None for calls and all other instructions."""
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
    """LDM, STM, LDRD, STRD, table branches, exclusives."""
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
