"""Split code into instructions, which the decoders thumb.py, riscv.py and avr.py explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """An instruction of two or four bytes; the first halfword is in the low bits of `word`."""

    address: int
    size: int
    word: int

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def first(self) -> int:
        return self.word & 0xFFFF

    @property
    def second(self) -> int:
        """Return the second halfword; 0 for instructions of two bytes."""
        return self.word >> 16


def split(code: bytes, address: int, is_long: Callable[[int], bool]) -> Iterator[Instruction]:
    """Yield the instructions of code without literals. `is_long` is a decoder's: it takes the first halfword."""
    at = 0
    while at + 2 <= len(code):
        first = int.from_bytes(code[at : at + 2], "little")
        size = 4 if is_long(first) and at + 4 <= len(code) else 2
        yield Instruction(address + at, size, int.from_bytes(code[at : at + size], "little"))
        at += size


def sign_extend(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
