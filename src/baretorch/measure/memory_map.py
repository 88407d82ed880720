"""List the contents of the chip's memories by address, read from the linked image."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from baretorch.firmware.elf import ALLOC, LOAD, NOBITS, Elf, Section, read_elf
from baretorch.firmware.types import Image
from baretorch.targets.parts import MemoryBank

# (prefix of the section's name, kind, title); the first match counts. Kinds have colours on the page.
_KINDS = (
    (".weights", "weights", "weights"),
    (".arena", "arena", "arena"),
    (".stack", "stack", "stack, reserved"),
    (".data", "static", "static data"),
    (".bss", "static", "static data, zero"),
    (".rodata", "constants", "constants"),
    (".text", "code", "code"),
    (".ramcode", "code", "code"),
)


@dataclass(frozen=True)
class MemoryBlock:
    """Bytes that belong together; `kind` is "code", "constants", "weights", "static", "arena" or "stack"."""

    name: str
    kind: str
    address: int
    size: int


@dataclass(frozen=True)
class BankMap:
    """A bank of the chip and its contents in the order of addresses."""

    memory: MemoryBank
    pieces: tuple[MemoryBlock, ...]

    @property
    def used(self) -> int:
        return sum(p.size for p in self.pieces)

    def to_json(self) -> dict[str, Any]:
        m = self.memory
        pieces = [asdict(piece) for piece in self.pieces]
        return {"memory": m.name, "kind": m.kind, "origin": m.origin, "size": m.size, "pieces": pieces}


def memory_map(image: Image) -> tuple[BankMap, ...]:
    """Return all banks of the board's chip, empty ones too."""
    elf = read_elf(image.elf.read_bytes())
    pieces = [_piece(s) for s in elf.sections if s.flags & ALLOC and s.size]
    pieces += _find_copies(elf)
    return tuple(
        BankMap(m, tuple(sorted((p for p in pieces if m.holds(p.address)), key=lambda p: p.address)))
        for m in image.board.chip.memories
    )


def ram_banks(image: Image) -> tuple[tuple[MemoryBank, int], ...]:
    """Return the used bytes of each bank of RAM that is used, the main one first. The stack counts with its bound."""
    chip = image.board.chip
    main = chip.memory(chip.data)
    banks = () if image.board.hosted else memory_map(image)  # the host's addresses are its own
    used = {b.memory: sum(p.size for p in b.pieces if p.kind != "stack") for b in banks if b.memory.kind == "ram"}
    others = tuple((memory, size) for memory, size in used.items() if size and memory != main)
    return ((main, used[main] + image.ram.stack if others else image.ram.total), *others)


def _piece(section: Section) -> MemoryBlock:
    for begin, kind, name in _KINDS:
        if section.name.startswith(begin):
            return MemoryBlock(name, kind, section.address, section.size)
    return MemoryBlock(section.name.lstrip(".").replace("_", " "), "code", section.address, section.size)


def _find_copies(elf: Elf) -> list[MemoryBlock]:
    """Return the copies in flash of what start-up code moves to RAM."""
    return [
        replace(piece, name=f"{piece.name}, as stored", address=piece.address - s.address + s.physical)
        for s in elf.segments
        if s.type == LOAD and s.physical != s.address
        for piece in (_piece(x) for x in elf.sections if x.flags & ALLOC and x.type != NOBITS and x.size)
        if s.address <= piece.address < s.address + len(s.data)
    ]
