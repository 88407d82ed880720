"""Decodes AVR instructions, as far as needed for calls, stack frames and the kinds of instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from baretorch.targets.kinds import Kind, Work

RETURN_BYTES = {5: 2, 6: 3}  # that a call pushes, by the core's number in an ELF file's flags
SAVED_TOGETHER = 18  # bytes: all registers that functions of libgcc save by __prologue_saves__
_IN_Y, _OUT_Y = 0xB7CD, 0xBFCD  # Y's low byte from and to the stack pointer
_SBC_ZERO = 0x09D1  # SBC r29, r1
_RCALL, _RJMP = 0xD, 0xC
_ICALLS = frozenset({0x9509, 0x9519})
_IJMPS = frozenset({0x9409, 0x9419})
_RETURNS = frozenset({0x9508, 0x9518})


@dataclass(frozen=True)
class AvrInstruction:
    address: int
    size: int
    word: int
    second: int = 0  # its other word, if it has two

    @property
    def end(self) -> int:
        return self.address + self.size


def instructions(code: bytes, address: int) -> Iterator[AvrInstruction]:
    """Split code into instructions of one or two words."""
    at = 0
    while at + 2 <= len(code):
        word = int.from_bytes(code[at : at + 2], "little")
        size = 4 if is_long(word) else 2
        yield AvrInstruction(address + at, size, word, int.from_bytes(code[at + 2 : at + size], "little"))
        at += size


def is_long(word: int) -> bool:
    """Report whether an instruction has two words: LDS, STS, JMP and CALL."""
    return word & 0xFC0F == 0x9000 or word & 0xFE0C == 0x940C


def call_target(i: AvrInstruction) -> int | None:
    """Return the target of a call; None for other instructions, and for calls through a register."""
    if i.word >> 12 == _RCALL:
        return _relative(i, 12)
    return _absolute(i) if i.word & 0xFE0E == 0x940E else None


def jump_target(i: AvrInstruction) -> int | None:
    """Return the target of a jump or a branch; None for calls and all other instructions."""
    if i.word >> 12 == _RJMP:
        return _relative(i, 12)
    if i.word & 0xF800 == 0xF000:  # BRBS, BRBC
        return i.end + 2 * _signed(i.word >> 3 & 0x7F, 7)
    return _absolute(i) if i.word & 0xFE0E == 0x940C else None


def is_indirect_call(i: AvrInstruction) -> bool:
    return i.word in _ICALLS


def stack_growth(code: Iterable[AvrInstruction], return_bytes: int, saves: range) -> int:
    """Return the bytes of a function's frame: the return address, pushes, and the room that is subtracted from the
    stack pointer in Y, or passed in X to libgcc's __prologue_saves__ at the address `saves`. Y is the stack pointer
    only between the instructions that load and store it; elsewhere the function adjusts Y to reach distant parts of the
    frame."""
    total = return_bytes
    moves = False
    x = {26: 0, 27: 0}
    low = 0
    for i in code:
        register = 16 + (i.word >> 4 & 15)
        value = i.word >> 4 & 0xF0 | i.word & 15
        if i.word in (_IN_Y, _OUT_Y):
            moves = i.word == _IN_Y
        if i.word & 0xFE0F == 0x920F:  # PUSH
            total += 1
        elif call_target(i) == i.end:  # to the next instruction: the cheapest way to get some bytes
            total += return_bytes
        elif moves and i.word & 0xFF30 == 0x9720:  # SBIW from Y
            total += i.word >> 2 & 0x30 | i.word & 15
        elif moves and i.word >> 12 == 5 and register == 28:  # SUBI from Y
            low = value
        elif moves and i.word >> 12 == 4 and register == 29:  # SBCI with it; what is negative was added
            total += max(0, _signed(value << 8 | low, 16))
        elif moves and i.word == _SBC_ZERO:
            total += low
        elif i.word >> 12 == 0xE and register in x:  # LDI
            x[register] = value
        elif (target := jump_target(i)) is not None and target in saves:
            total += SAVED_TOGETHER + (x[27] << 8 | x[26])
    return total


def work_of(i: AvrInstruction, skipped: int = 0) -> Work:
    """Return the kind of an instruction; `skipped` is the first word of the next one, which it may skip."""
    w = i.word
    if w & 0xFC00 == 0x1000 or w & 0xFC08 == 0xFC00 or w & 0xFD00 == 0x9900:  # CPSE; SBRC, SBRS; SBIC, SBIS
        return Work(Kind.SKIP_LONG if is_long(skipped) else Kind.SKIP)
    if w >> 12 == _RCALL or w in _ICALLS:
        return Work(Kind.CALL if w >> 12 == _RCALL else Kind.CALL_BY_REGISTER)
    if w & 0xFE0E == 0x940E:
        return Work(Kind.CALL_FAR)
    if w & 0xFE0E == 0x940C:
        return Work(Kind.JUMP_FAR)
    if w in _RETURNS:
        return Work(Kind.RETURN)
    if w >> 12 == _RJMP or w & 0xF800 == 0xF000 or w in _IJMPS:
        return Work(Kind.BRANCH)
    if w & 0xFE00 == 0x9600 or w & 0xFD00 == 0x9800:  # ADIW, SBIW; CBI, SBI
        return Work(Kind.PAIR)
    if w & 0xFC00 == 0x9C00 or w & 0xFE00 == 0x0200 or w & 0xFF00 == 0x0300:  # MUL; MULS; MULSU and fractions
        return Work(Kind.MULTIPLY)
    if w in (0x95C8, 0x95D8) or w & 0xFE0C == 0x9004:  # LPM, ELPM
        return Work(Kind.LOAD_CODE)
    if w & 0xD000 == 0x8000 or w & 0xFC00 == 0x9000:  # LDD, STD; LDS, LD, POP; STS, ST, PUSH
        return Work(Kind.STORE if w & 0x0200 else Kind.LOAD)
    return Work(Kind.ALU)


def _absolute(i: AvrInstruction) -> int:
    return ((i.word >> 3 & 0x3E | i.word & 1) << 16 | i.second) * 2


def _relative(i: AvrInstruction, bits: int) -> int:
    return i.end + 2 * _signed(i.word & ((1 << bits) - 1), bits)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
