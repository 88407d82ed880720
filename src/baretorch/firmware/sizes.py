"""Measure flash and RAM of a linked image, and report by how many bytes an image does not fit its chip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from baretorch.errors import CompileError, InternalError, see_fit
from baretorch.firmware.chunks import load_chunks
from baretorch.firmware.elf import ALLOC, NOBITS, WRITE, Elf
from baretorch.firmware.reach import LinkedSection, PieceMap, reachable
from baretorch.firmware.types import FlashUse, RamUse
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board

COPIED = ".data.bt_weights"  # to RAM, at start-up
WEIGHTS = (".rodata.bt_weights", ".srodata.bt_weights", ".progmem.data.bt_weights", COPIED)
COPIES = ".weights."  # the beginning of the names of their sections in RAM
ARENA = ".bss.bt_arena"
STACK = ".stack"
_ROOM = 1 << 28  # bytes of a bank in which everything fits
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
        own = [c for c in chunks if memory.holds(c.address)]
        used += max((c.end for c in own), default=0) - min((c.address for c in own), default=0)
    return used


def _total(pieces: Iterable[LinkedSection]) -> int:
    return sum(p.size for p in pieces)


def with_large_memories(board: Board) -> Board:
    """Return the board with banks so large that everything fits: linking for it shows how much is needed. The host has
    room as it is."""
    if board.hosted:
        return board
    if board.chip.cpu.flash_apart:  # 8 MB of flash is what calls reach; RAM stays where files have it
        cpu = replace(board.chip.cpu, flash_reach=1 << 23)
        large = (replace(m, size=1 << 23 if m.kind == "flash" else 1 << 22) for m in board.chip.memories)
        return replace(board, chip=replace(board.chip, cpu=cpu, memories=tuple(large)))
    banks = (replace(m, origin=i * _ROOM, size=_ROOM) for i, m in enumerate(board.chip.memories, 1))
    return replace(board, chip=replace(board.chip, memories=tuple(banks)))


def misfit(board: Board, elf: Elf) -> CompileError | None:
    """Return the error for an image that was linked for with_large_memories(board) because it did not fit the board."""
    large = with_large_memories(board)
    needs = [(m, needed_bytes(large, elf, m.name)) for m in board.chip.memories]
    short = [(m, need) for m, need in needs if need > m.size]
    if not short:
        return None
    gaps = " and ".join(f"{m.name} is {need - m.size} bytes too small" for m, need in short)
    return CompileError(
        f"the image does not fit {board.name}: {gaps}",
        have=[f"{m.name} {m.size} bytes" for m, _ in short],
        need=[f"{m.name} {need} bytes: {_parts(large, elf, m)}" for m, need in short],
        try_=see_fit(board.name),
    )


def needed_bytes(large: Board, elf: Elf, name: str) -> int:
    """Return the bytes of a bank that an image linked for large memories needs, including the reserved stack."""
    bank = large.chip.memory(name)
    ends = [s.address + s.size for s in elf.sections if s.flags & ALLOC and s.name != STACK and bank.holds(s.address)]
    ends += [c.end for c in load_chunks(elf) if bank.holds(c.address)]
    stack = reserved_stack(elf) if name == large.chip.data else 0
    return max(ends, default=bank.origin) - bank.origin + stack


def reserved_stack(elf: Elf) -> int:
    """Return the bytes for the stacks of all cores that the image uses."""
    return sum(s.size for s in elf.sections if s.name == STACK)


def _parts(large: Board, elf: Elf, memory: MemoryBank) -> str:
    """List the parts of a bank and their bytes as text."""
    bank = large.chip.memory(memory.name)
    sections = [s for s in elf.sections if s.flags & ALLOC and bank.holds(s.address)]
    if memory.kind == "flash":
        weights = sum(s.size for s in elf.sections if s.name.startswith(".weights"))
        return f"{weights} of weights, {flash_bytes(large, elf) - weights} of code"
    arena = sum(s.size for s in sections if s.name.startswith(".arena"))
    weights = sum(s.size for s in sections if s.name.startswith(COPIES))
    copied = f", {weights} of weights" if weights else ""
    code = sum(s.size for s in sections if s.name == CODE_IN_RAM)
    copied += f", {code} of code" if code else ""
    static = sum(s.size for s in sections if s.name in (".data", ".bss"))
    stack = f", {reserved_stack(elf)} of stack" if memory.name == large.chip.data else ""
    return f"{arena} of arena{copied}, {static} of static data{stack}"
