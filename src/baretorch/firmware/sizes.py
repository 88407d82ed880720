"""Measures flash and RAM of a linked image, from the image itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from baretorch.errors import InternalError
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.elf import ALLOC, NOBITS, WRITE, Elf
from baretorch.firmware.reach import LinkedSection, PieceMap, reachable
from baretorch.firmware.types import FlashUse, RamUse
from baretorch.targets.types import Board

COPIED = ".data.bt_weights"  # to RAM, at start-up
WEIGHTS = (".rodata.bt_weights", ".srodata.bt_weights", ".progmem.data.bt_weights", COPIED)
COPIES = ".weights."  # the beginning of the names of their sections in RAM
ARENA = ".bss.bt_arena"
STACK = ".stack"
CODE_IN_RAM = ".ramcode"  # copied to RAM at start-up


def measure(
    board: Board, elf: Elf, pieces: Sequence[LinkedSection], roots: Sequence[str], stack: int
) -> tuple[FlashUse, RamUse]:
    """Return the sizes of the whole image, and of the part that the model's functions need: the run function, and that
    of core 1 if there is one."""
    there = PieceMap(elf, pieces)
    model: set[LinkedSection] = set()
    for root in roots:
        needed = reachable(elf, there, elf.symbol(root).address)
        if not needed:
            raise InternalError(f"the linker's map has no section for {root}")
        model |= needed
    writable = {s.name for s in elf.sections if s.flags & WRITE}

    weights = _total(p for p in there.pieces if p.name.startswith(WEIGHTS))
    total = flash_bytes(board, elf)
    flash = FlashUse(
        model_code=_total(p for p in model if p.output not in writable and not p.name.startswith(WEIGHTS)),
        code=total - weights,
        weights=weights,
        total=total,
    )

    arena = _total(p for p in there.pieces if p.name.startswith(ARENA))
    copied = _total(p for p in there.pieces if p.name.startswith(COPIED))
    own = (s for s in elf.sections if s.flags & ALLOC and s.flags & WRITE and not s.name.startswith((STACK, COPIES)))
    code = _total(p for p in model if p.output == CODE_IN_RAM)
    static = sum(s.size for s in own) - arena + sum(s.size for s in elf.sections if s.name == CODE_IN_RAM) - code
    ram = RamUse(
        arena=arena,
        weights=copied,
        code=code,
        model_static=_total(p for p in model if p.output in writable and not p.name.startswith((ARENA, COPIED))),
        static=static,
        stack=stack,
        total=arena + copied + code + static + stack,
    )
    return flash, ram


def flash_bytes(board: Board, elf: Elf) -> int:
    """Return the bytes stored for the image: per memory bank, from the first to the last, including gaps."""
    if board.hosted:
        return sum(s.size for s in elf.sections if s.flags & ALLOC and s.type != NOBITS)
    chunks = load_chunks(elf)
    used = 0
    for memory in board.chip.memories:
        own = [c for c in chunks if memory.origin <= c.address < memory.origin + memory.size]
        used += max((c.end for c in own), default=0) - min((c.address for c in own), default=0)
    return used


def _total(pieces: Iterable[LinkedSection]) -> int:
    return sum(p.size for p in pieces)
