"""Find the input sections of a linked image in the linker's map, and follow the references between them.

The map is GNU ld's or LLD's. References are the relocations that the linker kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from baretorch.errors import InternalError
from baretorch.firmware import thumb
from baretorch.firmware.elf import ALLOC, ARM, EXECUTE, SECTION, X86_64, Elf, Relocation
from baretorch.firmware.instructions import Instruction

_R_ARM_NOTHING = frozenset({0, 40, 42})  # NONE, V4BX, PREL31 (unwind tables)
_R_ARM_WORDS = frozenset({2, 38})  # ABS32, TARGET1
_R_ARM_RELATIVE = 3  # REL32
_R_ARM_BRANCHES = frozenset({10, 30})  # THM_CALL, THM_JUMP24
_R_ARM_MOVW, _R_ARM_MOVT = 47, 48  # THM_MOVW_ABS_NC, THM_MOVT_ABS
_R_RISCV_LABELS = frozenset({24, 25})  # PCREL_LO12: they name the instruction with the upper half, itself followed
_R_X86_64_RELATIVE = frozenset({2, 4, 9, 41, 42})  # PC32, PLT32, GOTPCREL and its relaxed forms
_X86_64_BRANCHES = frozenset({0xE8, 0xE9})
_X86_64_IMMEDIATES = {0x6B: 1, 0x80: 1, 0x83: 1, 0xC0: 1, 0xC1: 1, 0xC6: 1, 0x69: 4, 0x81: 4, 0xC7: 4}  # by opcode

_GNU_START = "Linker script and memory map"
_LLD_START = re.compile(r"\s*VMA\s+LMA\s+Size\s+Align\s+Out\s+In\s+Symbol")
# GNU ld breaks the line after a long name. Output sections start in the first column, input sections in the second.
_GNU_ROW = re.compile(
    r"^(?P<output>[^\s*/]\S*)(?:\s+0x[0-9a-f]+\s+0x[0-9a-f]+.*)?$"
    r"|^ (?P<name>[^\s*]\S*)\s+0x(?P<address>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+) (?P<source>\S.*)$",
    re.MULTILINE,
)
_LLD_ROW = re.compile(
    r"^ *(?P<address>[0-9a-f]+) +[0-9a-f]+ +(?P<size>[0-9a-f]+) +[0-9]+ "
    r"(?:(?P<output>\S+)| {8}(?P<source>\S.*):\((?P<name>.+)\))$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class LinkedSection:
    """An input section in the linked image."""

    name: str
    output: str  # the output section it is part of
    source: str  # object file, or archive(member)
    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


def parse_map(text: str) -> tuple[LinkedSection, ...]:
    """Return all input sections that take up space, in the order of the map."""
    if _LLD_START.match(text):
        return tuple(_pieces(_LLD_ROW, text))
    _, found, body = text.partition(_GNU_START)
    if not found:
        raise InternalError("the linker's map is neither GNU ld's nor LLD's")
    return tuple(_pieces(_GNU_ROW, body))


def _pieces(row: re.Pattern[str], text: str) -> Iterator[LinkedSection]:
    output = ""
    for match in row.finditer(text):
        if match["output"]:
            output = match["output"]
        elif size := int(match["size"], 16):
            yield LinkedSection(match["name"], output, match["source"], int(match["address"], 16), size)


@dataclass(frozen=True)
class CodeReference:
    """A reference from the bytes at `source` to the address `target`."""

    source: int
    target: int


def references(elf: Elf) -> Iterator[CodeReference]:
    """Yield every reference in the loaded sections, resolved to an address without Thumb bit."""
    movw: dict[int, int] = {}  # lower halves by register, until the upper half follows
    for r in elf.relocations:
        if not r.symbol.name or not elf.sections[r.section].flags & ALLOC:
            continue
        if elf.machine == ARM and r.type in (_R_ARM_MOVW, _R_ARM_MOVT) and r.symbol.type == SECTION:
            register, half = thumb.move_immediate(int.from_bytes(elf.bytes_at(r.offset, 4), "little"))
            if r.type == _R_ARM_MOVW:
                movw[register] = half
            elif register in movw:
                yield CodeReference(r.offset, _without_thumb_bit(elf, half << 16 | movw[register]))
            else:
                raise InternalError(f"the upper half of an address at {r.offset:#x} has no lower half before it")
        elif (target := _target(elf, r)) is not None:
            yield CodeReference(r.offset, target)


def _target(elf: Elf, r: Relocation) -> int | None:
    """Return the address that a relocation refers to. Named symbols contain it; section symbols need the addend."""
    if r.symbol.type != SECTION:
        return r.symbol.address if r.symbol.defined else None
    if elf.machine == ARM:
        return _arm_target(elf, r)
    addend = r.addend or 0
    if elf.machine == X86_64:
        return r.symbol.value + addend + (_x86_64_distance(elf, r.offset) if r.type in _R_X86_64_RELATIVE else 0)
    return None if r.type in _R_RISCV_LABELS else r.symbol.value + addend


def _arm_target(elf: Elf, r: Relocation) -> int | None:
    """Return the target of an Arm relocation. Arm keeps addends in the code, so the linked code contains the target."""
    if r.type in _R_ARM_NOTHING:
        return None
    word = int.from_bytes(elf.bytes_at(r.offset, 4), "little")
    if r.type in _R_ARM_WORDS:
        return _without_thumb_bit(elf, word)
    if r.type == _R_ARM_RELATIVE:
        return _without_thumb_bit(elf, (word + r.offset) & 0xFFFFFFFF)
    if r.type in _R_ARM_BRANCHES and (target := thumb.branch_target(Instruction(r.offset, 4, word))) is not None:
        return target
    raise InternalError(f"relocation of type {r.type} at {r.offset:#x} is not understood")


def _without_thumb_bit(elf: Elf, address: int) -> int:
    section = elf.section_at(address)
    return address & ~1 if section is not None and section.flags & EXECUTE else address


def _x86_64_distance(elf: Elf, offset: int) -> int:
    """Return the distance from a PC-relative field to the end of its instruction: the field itself and an immediate."""
    opcode, last = elf.bytes_at(offset - 2, 2)
    return 4 if last in _X86_64_BRANCHES else 4 + _X86_64_IMMEDIATES.get(opcode, 0)


class PieceMap:
    """Finds the pieces of an image by address."""

    def __init__(self, elf: Elf, pieces: Sequence[LinkedSection]) -> None:
        loaded = {s.name: s for s in elf.sections if s.flags & ALLOC}
        self.pieces = sorted(
            (p for p in pieces if p.output in loaded and loaded[p.output].holds(p.address)), key=lambda p: p.address
        )
        self._starts = [p.address for p in self.pieces]

    def at(self, address: int) -> LinkedSection | None:
        i = bisect_right(self._starts, address) - 1
        return self.pieces[i] if i >= 0 and address < self.pieces[i].end else None


def reachable(elf: Elf, there: PieceMap, root: int) -> frozenset[LinkedSection]:
    """Return the pieces that the one at `root` needs, itself included."""
    edges: dict[LinkedSection, set[LinkedSection]] = {}
    for reference in references(elf):
        source, target = there.at(reference.source), there.at(reference.target)
        if source is not None and target is not None:
            edges.setdefault(source, set()).add(target)
    start = there.at(root)
    found: set[LinkedSection] = set()
    waiting = [] if start is None else [start]
    while waiting:
        piece = waiting.pop()
        if piece not in found:
            found.add(piece)
            waiting.extend(edges.get(piece, ()))
    return frozenset(found)
