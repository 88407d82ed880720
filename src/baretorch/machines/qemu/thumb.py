"""Decode loads and stores of Thumb, for devices that QEMU does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Register = Callable[[int], int]  # what a register holds


@dataclass(frozen=True)
class Transfer:
    """`back` is a register that the instruction changes as well, and what to."""

    load: bool
    register: int
    address: int
    size: int  # bytes moved
    length: int  # bytes of the instruction
    back: tuple[int, int] | None = None


def transfer(code: bytes, register: Register) -> Transfer | None:
    """Decode the first instruction of `code`; None unless it moves one register to or from memory."""
    first, second = int.from_bytes(code[:2], "little"), int.from_bytes(code[2:4], "little")
    if first >> 11 in (0b11101, 0b11110, 0b11111):
        return _long(first, second, register)
    return _short(first, register)


def _short(word: int, register: Register) -> Transfer | None:
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


def _long(first: int, second: int, register: Register) -> Transfer | None:
    """STR.W and LDR.W, and their forms for bytes and halfwords."""
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
