"""Generate random programs for CV32E40P, with every instruction of the simulator and more hazards than chance has. A
program sets all registers, runs its body, stores the registers to RESULT and writes a byte to the console. Registers
that hold addresses are written only by loads and stores that increment them, and are set again now and then."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

L1, L2, UART, EVENTS = 0x10000000, 0x1C000000, 0x1A100000, 0x1A104000
CODE = L2
DATA, FAR, RESULT = L1 + 0x4000, L2 + 0x80000, L1 + 0x100

NEAR_BASE, FAR_BASE, OFFSET, LINK, LAST = 8, 9, 18, 5, 31  # registers with a purpose
FREE = tuple(r for r in range(32) if r not in (NEAR_BASE, FAR_BASE, OFFSET, LINK, LAST))
SMALL = tuple(r for r in range(10, 16))  # that compressed instructions can name

CUSTOM0, CUSTOM1, CUSTOM2, CUSTOM3 = 0x0B, 0x2B, 0x5B, 0x7B
OP, OP_IMM, LOAD, STORE = 0x33, 0x13, 0x03, 0x23
BRANCHES = (0, 1, 4, 5, 6, 7)

SIMD_MODES = (0, 1, 4, 5, 6, 7)
SIMD_PLAIN = (0x00, 0x02, 0x04, 0x06, 0x08, 0x0A, 0x0C, 0x0E, 0x16, 0x18, 0x1A)
SIMD_SHIFTS = (0x10, 0x12, 0x14)
SIMD_COMPARES = tuple(range(0x01, 0x14, 2))
SIMD_DOTS = (0x20, 0x22, 0x24, 0x26, 0x28, 0x2A)
GENERAL_TWO = (0x20, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x38, 0x39, 0x3A, 0x3B, *range(0x40, 0x48), 0x48, 0x49)
GENERAL_ONE = (0x21, 0x22, 0x23, 0x24, 0x28, 0x30, 0x31, 0x32, 0x33)


def r_type(f7: int, rs2: int, rs1: int, f3: int, rd: int, opcode: int) -> int:
    return f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode


def i_type(imm: int, rs1: int, f3: int, rd: int, opcode: int) -> int:
    return (imm & 0xFFF) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode


def s_type(imm: int, rs2: int, rs1: int, f3: int, opcode: int) -> int:
    return r_type(imm >> 5 & 0x7F, rs2, rs1, f3, imm & 31, opcode)


def b_type(offset: int, rs2: int, rs1: int, f3: int, opcode: int = 0x63) -> int:
    high = (offset >> 12 & 1) << 6 | offset >> 5 & 0x3F
    return r_type(high, rs2, rs1, f3, (offset & 0x1E) | offset >> 11 & 1, opcode)


def jal(offset: int, rd: int) -> int:
    field_ = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21 | (offset >> 11 & 1) << 20
    return field_ | (offset >> 12 & 0xFF) << 12 | rd << 7 | 0x6F


def addi(rd: int, rs1: int, imm: int) -> int:
    return i_type(imm, rs1, 0, rd, OP_IMM)


def constant(rd: int, value: int) -> list[int]:
    """Two instructions that set a register."""
    low = (value & 0xFFF ^ 0x800) - 0x800
    return [(value - low & 0xFFFFF000) | rd << 7 | 0x37, addi(rd, rd, low)]


@dataclass
class Program:
    """Code as it grows: words of 32 bits, and halves."""

    chance: random.Random
    code: bytearray = field(default_factory=bytearray)
    recent: int = 1  # the register written last
    instructions: int = 0

    def put(self, *words: int) -> None:
        for word in words:
            self.code += struct.pack("<I", word)
            self.instructions += 1

    def put_half(self, half: int) -> None:
        self.code += struct.pack("<H", half)
        self.instructions += 1

    def align(self) -> None:
        if len(self.code) % 4:
            self.put_half(0x0001)

    def source(self) -> int:
        """A register to read: often the one written last."""
        if self.chance.random() < 0.35:
            return self.recent
        return self.chance.choice((*FREE, NEAR_BASE, OFFSET))

    def target(self) -> int:
        self.recent = self.recent if self.chance.random() < 0.15 and self.recent in FREE else self.chance.choice(FREE)
        return self.recent


def _alu(p: Program) -> int:
    c = p.chance
    a, b, f3 = p.source(), p.source(), c.randrange(8)
    kind = c.random()
    if kind < 0.3:
        imm = c.randrange(32) | c.choice((0, 0x400)) * (f3 == 5) if f3 in (1, 5) else c.randrange(-2048, 2048)
        return i_type(imm, a, f3, p.target(), OP_IMM)
    if kind < 0.4:
        return c.getrandbits(20) << 12 | p.target() << 7 | c.choice((0x37, 0x17))
    f7 = 0x20 if f3 in (0, 5) and c.random() < 0.4 else 0
    return r_type(f7, b, a, f3, p.target(), OP)


def _multiply(p: Program) -> int:
    return r_type(1, p.source(), p.source(), p.chance.choice((0, 0, 1, 2, 3, 4, 5, 6, 7)), p.target(), OP)


def _general(p: Program) -> int:
    c, a = p.chance, p.source()
    kind = c.random()
    if kind < 0.2:
        return r_type(c.choice(GENERAL_ONE), 0, a, 3, p.target(), CUSTOM1)
    if kind < 0.6:
        return r_type(c.choice(GENERAL_TWO), p.source(), a, 3, p.target(), CUSTOM1)
    if kind < 0.7:
        return r_type(c.choice((0x18, 0x19, 0x1A, 0x1C, 0x1D)), p.source(), a, 3, p.target(), CUSTOM1)
    if kind < 0.8:
        f2, f3 = c.choice(((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (3, 1)))
        low = c.randrange(32)
        width = c.randrange(4) if f2 == 3 else c.randrange(32 - low)
        return r_type(f2 << 5 | width, low, a, f3, p.target(), CUSTOM2)
    return r_type(c.getrandbits(7), p.source(), a, c.choice((2, 3, 4, 5, 6, 7)), p.target(), CUSTOM2)


def _simd(p: Program) -> int:
    c, a, b = p.chance, p.source(), p.source()
    kind, f3 = c.random(), c.choice(SIMD_MODES)
    low = c.getrandbits(1) if f3 >= 6 else 0
    second = c.randrange(32) if f3 >= 6 else b
    if kind < 0.35:
        return r_type(c.choice(SIMD_DOTS) << 1 | low, second, a, f3, p.target(), CUSTOM3)
    if kind < 0.6:
        return r_type(c.choice(SIMD_PLAIN) << 1 | low, second, a, f3, p.target(), CUSTOM3)
    if kind < 0.7:
        second = c.randrange(8 if f3 == 6 else 4) if f3 >= 6 else b
        return r_type(c.choice(SIMD_SHIFTS) << 1 | low, second, a, f3, p.target(), CUSTOM3)
    if kind < 0.8:
        return r_type(c.choice(SIMD_COMPARES) << 1 | low, second, a, f3, p.target(), CUSTOM3)
    rows: tuple[Callable[[], int], ...] = (
        lambda: r_type(0x1C << 1, 0, a, c.choice((0, 1)), p.target(), CUSTOM3),
        lambda: _element(p, a),
        lambda: r_type(0x30 << 1, b, a, c.choice((0, 1)), p.target(), CUSTOM3),
        lambda: r_type(0x30 << 1 | c.getrandbits(1), c.randrange(2), a, 6, p.target(), CUSTOM3),
        lambda: r_type(
            c.choice((0x30, 0x32, 0x34, 0x36)) << 1 | c.getrandbits(1), c.randrange(32), a, 7, p.target(), CUSTOM3
        ),
        lambda: r_type(0x38 << 1, b, a, c.choice((0, 1)), p.target(), CUSTOM3),
        lambda: r_type(0x3C << 1 | c.getrandbits(1), b, a, 0, p.target(), CUSTOM3),
        lambda: r_type(0x3E << 1 | c.getrandbits(1), b, a, 1, p.target(), CUSTOM3),
        lambda: r_type(0x15 << 1 | c.getrandbits(1), b, a, c.choice((0, 2, 4, 6)), p.target(), CUSTOM3),
        lambda: r_type(0x17 << 1, 0, a, 0, p.target(), CUSTOM3),
        lambda: r_type(0x19 << 1, b, a, c.choice((0, 2, 4, 6)), p.target(), CUSTOM3),
        lambda: r_type(c.choice((0x1B, 0x1D)) << 1, b, a, c.choice((2, 4, 6)), p.target(), CUSTOM3),
    )
    return c.choice(rows)()


def _element(p: Program, a: int) -> int:
    f3 = p.chance.randrange(6)
    imm = p.chance.randrange(2) if f3 & 1 else 0
    return r_type(0x2E << 1 | p.chance.getrandbits(1), imm, a, f3, p.target(), CUSTOM3)


def _memory(p: Program) -> int:
    """A load or store at one of the bases, in any form."""
    c = p.chance
    base = FAR_BASE if c.random() < 0.1 else NEAR_BASE
    imm = c.randrange(-64, 64) & (~3 if c.random() < 0.8 else ~0)
    form, value = c.randrange(4), p.source()
    if c.random() < 0.6:
        type_ = c.choice((0, 1, 2, 2, 4, 5))
        code = (type_ & 3) | (type_ & 4) << 1
        rd = p.target()
        return (
            i_type(imm, base, type_, rd, LOAD),
            i_type(imm // 4, base, type_, rd, CUSTOM0),
            r_type(code, OFFSET, base, 3, rd, CUSTOM1),
            r_type(code | 4, OFFSET, base, 3, rd, CUSTOM1),
        )[form]
    type_ = c.choice((0, 1, 2, 2))
    return (
        s_type(imm, value, base, type_, STORE),
        s_type(imm // 4, value, base, type_, CUSTOM1),
        r_type(0x10 | type_, value, base, 3, OFFSET, CUSTOM1),
        r_type(0x14 | type_, value, base, 3, OFFSET, CUSTOM1),
    )[form]


def _csr(p: Program) -> int:
    c = p.chance
    if c.random() < 0.3:
        return i_type(0x340, p.source(), c.choice((1, 2, 3)), p.target(), 0x73)  # mscratch
    return i_type(c.choice((0xF14, 0xB00, 0xC00, 0xCC0, 0xCC2, 0xCC6, 0x305)), 0, 2, p.target(), 0x73)


WORDS: tuple[tuple[float, Callable[[Program], int]], ...] = (
    (0.22, _alu),
    (0.07, _multiply),
    (0.14, _general),
    (0.20, _simd),
    (0.35, _memory),
    (0.02, _csr),
)


def _word(p: Program, kinds: Iterable[tuple[float, Callable[[Program], int]]] = WORDS) -> int:
    rows = tuple(kinds)
    return p.chance.choices([make for _, make in rows], [weight for weight, _ in rows])[0](p)


def _half(p: Program) -> None:
    """A compressed instruction."""
    c, rd, small = p.chance, p.target(), p.chance.choice(SMALL)
    other, imm = c.choice(SMALL), c.randrange(1, 32)
    kind = c.randrange(8)
    if kind == 0:
        p.put_half(0x0001 | rd << 7 | imm << 2 | c.getrandbits(1) << 12)  # c.addi
    elif kind == 1:
        p.put_half(0x4001 | rd << 7 | imm << 2)  # c.li
    elif kind == 2 and rd:
        p.put_half(0x8002 | rd << 7 | c.choice([r for r in FREE if r]) << 2 | c.getrandbits(1) << 12)  # c.mv, c.add
    elif kind == 3:
        p.put_half(0x8001 | (small - 8) << 7 | c.choice((0, 1, 2)) << 10 | imm << 2)  # c.srli, c.srai, c.andi
    elif kind == 4:
        p.put_half(0x8C01 | (small - 8) << 7 | c.randrange(4) << 5 | (other - 8) << 2)  # c.sub, c.xor, c.or, c.and
    elif kind == 5:
        p.put_half(0x0002 | (rd or 1) << 7 | imm << 2)  # c.slli
    elif kind == 6:
        p.put_half(0x4000 | (NEAR_BASE - 8) << 7 | c.randrange(8) << 10 | (small - 8) << 2)  # c.lw
        p.recent = small
    else:
        p.put_half(0xC000 | (NEAR_BASE - 8) << 7 | c.randrange(8) << 10 | (small - 8) << 2)  # c.sw


def _jump(p: Program) -> None:
    """Forward over a few instructions, by a branch, a jump, or a register that was just computed or loaded."""
    c, kind = p.chance, p.chance.randrange(8)
    over = bytearray()
    for _ in range(c.randrange(0, 4)):
        over += struct.pack("<I", _word(p)) if c.random() < 0.6 else struct.pack("<H", 0x0001)
    far = len(over)
    if kind < 3:
        p.put(b_type(4 + far, p.source(), p.source(), c.choice(BRANCHES)))
    elif kind == 3:
        p.put(b_type(4 + far, c.randrange(32), p.source(), c.choice((6, 7)), CUSTOM0))
    elif kind == 4:
        p.put(jal(4 + far, c.choice((0, 1, LINK))))
    elif kind == 5:  # compressed
        offset = 2 + far
        fields = (offset >> 5 & 1) << 2 | (offset >> 1 & 7) << 3 | (offset >> 4 & 1) << 11
        p.put_half(0xA001 | fields)
    elif kind == 6:
        between = [_word(p) for _ in range(c.randrange(3))]
        p.put(LINK << 7 | 0x17, *between, i_type(8 + 4 * len(between) + far, LINK, 0, c.choice((0, 1)), 0x67))
    else:  # an address that was stored and loaded
        between = [_word(p) for _ in range(c.randrange(3))]
        p.put(LINK << 7 | 0x17, s_type(0, LINK, LAST, 2, STORE), i_type(0, LAST, 2, LINK, LOAD), *between)
        p.put(i_type(16 + 4 * len(between) + far, LINK, 0, c.choice((0, 1)), 0x67))
    p.code += over
    p.instructions += len(over) // 4


def _call(p: Program) -> None:
    """Call a function that soon returns, after any instruction; the jumps may have to wait."""
    c = p.chance
    inside = [_word(p) for _ in range(c.choice((0, 0, 1, 2)))]
    halves = c.randrange(3)
    size = 4 * len(inside) + 2 * halves + 4
    p.put(jal(4 + size, 0), *inside)
    for _ in range(halves):
        p.put_half(0x0001)
    p.put_half(0x8002 | LINK << 7)  # c.jr
    p.put_half(0x0001)
    if c.random() < 0.7:
        p.put(_memory(p))
        size += 4
    if c.random() < 0.6:
        p.put(jal(-size, LINK))
    else:
        p.put(LINK << 7 | 0x17, i_type(-size, LINK, 0, LINK, 0x67))  # auipc, jalr


def _body(p: Program, count: int) -> list[int]:
    kinds = [(weight, make) for weight, make in WORDS if make is not _csr]
    return [_word(p, kinds) for _ in range(count)]


def _setup(p: Program, loop: int, words: int) -> int:
    c = p.chance
    if c.random() < 0.5 and words < 31:
        return i_type(c.randrange(6), words + 1, 4, 6 << 1 | loop, CUSTOM1)  # cv.setupi
    p.put(addi(LINK, 0, c.randrange(6)))
    return i_type(words + 1, LINK, 4, 7 << 1 | loop, CUSTOM1)


def _loop(p: Program) -> None:
    """A hardware loop, or two."""
    p.align()
    inner = _body(p, p.chance.randrange(3, 9))
    if p.chance.random() < 0.7:
        setup = _setup(p, p.chance.getrandbits(1), len(inner))
        p.put(setup, *inner)
        return
    before, behind = _body(p, p.chance.randrange(0, 3)), _body(p, p.chance.randrange(2, 5))
    inner_setup = i_type(p.chance.randrange(1, 5), len(inner) + 1, 4, 6 << 1, CUSTOM1)
    whole = [*before, inner_setup, *inner, *behind]
    setup = _setup(p, 1, len(whole))
    p.put(setup, *whole)


def _bases(p: Program) -> None:
    c = p.chance
    near = DATA + c.randrange(0, 0x1000) * (1 if c.random() < 0.3 else 4)
    p.put(*constant(NEAR_BASE, near), *constant(FAR_BASE, FAR + 4 * c.randrange(0, 0x1000)))
    p.put(addi(OFFSET, 0, c.randrange(-16, 16) * (1 if c.random() < 0.2 else 4)))


def _own(p: Program, base: int) -> None:
    """Each core has memory of its own."""
    p.put(i_type(0xF14, 0, 2, LINK, 0x73), i_type(15, LINK, 1, LINK, OP_IMM), r_type(0, LINK, base, 0, base, OP))


def _barrier(p: Program) -> None:
    rd = LINK if p.chance.random() < 0.4 else p.target()
    p.put(*constant(LINK, EVENTS), i_type(0, LINK, 3, rd, CUSTOM0))


def random_program(seed: int, length: int, cores: int = 1) -> bytes:
    """Return a program of about `length` instructions. All cores run the same, on memory of their own, and meet now and
    then."""
    p = Program(random.Random(seed))
    c = p.chance
    if seed % 2:
        p.put(i_type(0x320, 0, 5, 0, 0x73))  # mcountinhibit: mcycle counts
    for register in range(1, 32):
        p.put(*constant(register, c.choice((c.getrandbits(32), c.randrange(256), 0x80000000, 0xFFFFFFFF))))
    p.put(*constant(LAST, RESULT))
    if cores > 1:
        _own(p, LAST)
    end, set_at = p.instructions + length, 0
    while p.instructions < end:
        if p.instructions > set_at:
            set_at = p.instructions + 40
            _bases(p)
            if cores > 1:
                _own(p, NEAR_BASE)
                _own(p, FAR_BASE)
        kind = c.random()
        if kind < 0.10:
            _jump(p)
        elif kind < 0.12:
            _call(p)
        elif kind < 0.15:
            _loop(p)
        elif kind < 0.285:
            _half(p)
        elif kind < 0.29:
            p.put(0x0000100F if c.random() < 0.5 else 0x0FF0000F)  # fence.i, fence
        elif kind < 0.295:
            _barrier(p)
        else:
            p.put(_word(p))
    for register in range(1, 31):
        p.put(s_type(4 * register, register, LAST, 2, STORE))
    _barrier(p)
    p.put(i_type(0xF14, 0, 2, 2, 0x73), b_type(0, 0, 2, 1))  # all but core 0 stay here
    p.put(*constant(1, UART), s_type(0, 1, 1, 0, STORE), jal(0, 0))
    return bytes(p.code)
