"""Decodes AVR instructions, as far as needed for calls, stack frames and the kinds of instructions."""

from __future__ import annotations

from collections.abc import Iterable

from baretorch.firmware.instructions import Instruction, sign_extend
from baretorch.targets.cycles import Kind, Work

RETURN_BYTES = {5: 2, 6: 3}  # that a call pushes, by the core's number in an ELF file's flags
SAVED_TOGETHER = 18  # bytes: all registers that functions of libgcc save by __prologue_saves__
_IN_Y, _OUT_Y = 0xB7CD, 0xBFCD  # Y's low byte from and to the stack pointer
_SBC_ZERO = 0x09D1  # SBC r29, r1
_RCALL, _RJMP = 0xD, 0xC
_ICALLS = frozenset({0x9509, 0x9519})
_IJMPS = frozenset({0x9409, 0x9419})
_RETURNS = frozenset({0x9508, 0x9518})


def is_long(first: int) -> bool:
    """Report whether an instruction has two words: LDS, STS, JMP and CALL."""
    return first & 0xFC0F == 0x9000 or first & 0xFE0C == 0x940C


def call_target(before: Instruction | None, i: Instruction) -> int | None:
    """Return the target of a call; None for other instructions, and for calls through a register."""
    if i.first >> 12 == _RCALL:
        return _relative(i, 12)
    return _absolute(i) if i.first & 0xFE0E == 0x940E else None


def jump_target(i: Instruction) -> int | None:
    """Return the target of a jump or a branch; None for calls and all other instructions."""
    if i.first >> 12 == _RJMP:
        return _relative(i, 12)
    if i.first & 0xF800 == 0xF000:  # BRBS, BRBC
        return i.end + 2 * sign_extend(i.first >> 3 & 0x7F, 7)
    return _absolute(i) if i.first & 0xFE0E == 0x940C else None


def is_indirect_call(before: Instruction | None, i: Instruction) -> bool:
    return i.first in _ICALLS


def stack_growth(code: Iterable[Instruction], return_bytes: int, saves: range) -> int:
    """Return the bytes of a function's frame: the return address, pushes, and the room that is subtracted from the
    stack pointer in Y, or passed in X to libgcc's __prologue_saves__ at the address `saves`. Y is the stack pointer
    only between the instructions that load and store it; elsewhere the function adjusts Y to reach distant parts of the
    frame."""
    total = return_bytes
    moves = False
    x = {26: 0, 27: 0}
    low = 0
    for i in code:
        register = 16 + (i.first >> 4 & 15)
        value = i.first >> 4 & 0xF0 | i.first & 15
        if i.first in (_IN_Y, _OUT_Y):
            moves = i.first == _IN_Y
        if i.first & 0xFE0F == 0x920F:  # PUSH
            total += 1
        elif call_target(None, i) == i.end:  # to the next instruction: the cheapest way to get some bytes
            total += return_bytes
        elif moves and i.first & 0xFF30 == 0x9720:  # SBIW from Y
            total += i.first >> 2 & 0x30 | i.first & 15
        elif moves and i.first >> 12 == 5 and register == 28:  # SUBI from Y
            low = value
        elif moves and i.first >> 12 == 4 and register == 29:  # SBCI with it; what is negative was added
            total += max(0, sign_extend(value << 8 | low, 16))
        elif moves and i.first == _SBC_ZERO:
            total += low
        elif i.first >> 12 == 0xE and register in x:  # LDI
            x[register] = value
        elif (target := jump_target(i)) is not None and target in saves:
            total += SAVED_TOGETHER + (x[27] << 8 | x[26])
    return total


def work_of(i: Instruction) -> Work:
    """Return the kind of an instruction. SKIP stands for SKIP_LONG, too: that depends on the next instruction."""
    w = i.first
    if w & 0xFC00 == 0x1000 or w & 0xFC08 == 0xFC00 or w & 0xFD00 == 0x9900:  # CPSE; SBRC, SBRS; SBIC, SBIS
        return Work(Kind.SKIP)
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


def _absolute(i: Instruction) -> int:
    return ((i.first >> 3 & 0x3E | i.first & 1) << 16 | i.second) * 2


def _relative(i: Instruction, bits: int) -> int:
    return i.end + 2 * sign_extend(i.first & ((1 << bits) - 1), bits)
