"""Weights that are copied to RAM when the chip starts, because its flash is slow.

Those come first whose bytes save most cycles of a run there, as far as there is room beside the arena and the stacks.
Banks that hold nothing else are filled first. What is chosen without being asked for must pay, and leaves some room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.options import Weights
from baretorch.plan.banks import room
from baretorch.plan.types import Constant, Plan, Step
from baretorch.targets.types import Board, Chip, FlashPath

STATIC = 1024  # bytes that are left for the program's own data
RESERVE = 16384  # and by automatic choice for what is added to the program, a share of small memories
PAYS = 1.0  # cycles of a run that a byte must save for that
AT_ONCE = 4  # outputs that kernels make of a weight they have read, about
ALIGNMENT, SECTION = 8, 16  # of an array at most, and of the sections that hold weights and arena

Content = tuple[str, bytes]  # equal constants of all methods are one array


def in_ram(plans: Mapping[str, Plan], board: Board, weights: Weights, cores: int = 1, code: int = 0) -> dict[str, Plan]:
    """The plans of all methods, with the banks of those constants that are copied. `code` are bytes of RAM that the
    model's code takes; what is chosen automatically leaves room for it anyway."""
    chip = board.chip
    flash = chip.memory(chip.code)
    if weights is Weights.FLASH or (weights is Weights.AUTO and chip.flash_path is None):
        return dict(plans)
    if not flash.slow:
        raise CompileError(
            f"--weights ram gains nothing on {board.name}",
            have=f"{flash.name} answers as fast as RAM",
            need='a chip whose flash is slower: its TOML says why, as in slow = "QSPI flash behind a cache"',
        )
    reads = _reads(plans)
    saved = _saved(plans, chip.flash_path) if chip.flash_path is not None else dict.fromkeys(reads, 0.0)
    order = sorted(reads, key=lambda content: (-saved[content], -reads[content], -len(content[1])))
    free = _free(plans, chip, cores)
    free[chip.data] -= code if weights is Weights.RAM else 0
    if weights is Weights.AUTO and chip.flash_path is not None:
        order = list(_paying(order, saved, chip.flash_path))
        free = _spared(free, chip, chip.flash_path)
    banks: dict[Content, str] = {}
    for content in order:
        size = -(-len(content[1]) // ALIGNMENT) * ALIGNMENT
        bank = next((name for name, left in free.items() if size <= left), None)
        if bank is not None:
            banks[content] = bank
            free[bank] -= size
    return {
        name: replace(
            plan, layout=replace(plan.layout, copies={**_copies(plan.layout.constants, banks), **plan.layout.copies})
        )
        for name, plan in plans.items()
    }


def _copies(constants: Sequence[Constant], banks: Mapping[Content, str]) -> dict[str, str]:
    return {c.name: banks[_content(c)] for c in constants if _content(c) in banks}


def _free(plans: Mapping[str, Plan], chip: Chip, cores: int) -> dict[str, int]:
    """Bytes that no method needs of each bank of RAM, that of the program's data last."""
    names = sorted((m.name for m in chip.memories if m.kind == "ram"), key=lambda name: name == chip.data)
    used = {
        name: max((b.size for p in plans.values() for b in p.layout.banks if b.name == name), default=0)
        for name in names
    }
    lent = max(sum(p.graph[name].bytes for name in p.layout.streamed | p.layout.lent) for p in plans.values())
    own = {name: STATIC + lent if name == chip.data else 0 for name in names}  # an image of ours has what callers lend
    copied = {name: max(p.layout.copied(name) for p in plans.values()) for name in names}
    return {name: room(chip, name, cores) - used[name] - own[name] - copied[name] - 2 * SECTION for name in names}


def _spared(free: Mapping[str, int], chip: Chip, path: FlashPath) -> dict[str, int]:
    """What of that may be taken without being asked for: not from banks that are read through flash's cache too."""
    cache = path.cache_of("data")
    beside = cache.beside if cache is not None else ()
    kept = min(RESERVE, chip.memory(chip.data).size // 4)
    return {name: left - (kept if name == chip.data else 0) for name, left in free.items() if name not in beside}


def _paying(order: Sequence[Content], saved: Mapping[Content, float], path: FlashPath) -> Iterator[Content]:
    """Those that pay, until the rest fits in a part of the cache, where it stays from run to run."""
    rest = sum(len(data) for _, data in order)
    for content in order:
        if rest <= _kept(path) or saved[content] < PAYS:
            return
        yield content
        rest -= len(content[1])


def _kept(path: FlashPath) -> int:
    """Bytes of constants that a cache keeps beside code: half of it, since both meet in its sets."""
    cache = path.cache_of("data")
    return cache.size // 2 if cache is not None else 0


def _saved(plans: Mapping[str, Plan], path: FlashPath) -> dict[Content, float]:
    """Cycles of a run that each byte saves in RAM. A layer reads its constants from flash once if the cache keeps them
    meanwhile, and else again for every few outputs."""
    saved: dict[Content, float] = defaultdict(float)
    for step, contents in _steps(plans):
        fits = sum(len(data) for _, data in contents) <= _kept(path)
        outputs = min((_times(step, content) for content in contents), default=0.0)  # for each of them
        times = 1.0 if fits else max(1.0, outputs / AT_ONCE)
        for content in contents:
            saved[content] += times * path.cycles_per_byte
    return saved


def _reads(plans: Mapping[str, Plan]) -> dict[Content, float]:
    """How often a run uses each element of the constants."""
    reads: dict[Content, float] = defaultdict(float)
    for step, contents in _steps(plans):
        for content in contents:
            reads[content] += _times(step, content)
    return reads


def _times(step: Step, content: Content) -> float:
    """A layer's products, or else its outputs, are shared out evenly over each of its constants."""
    call = step.call
    work: int = max(call.op.macs(call.inputs, call.outputs), call.y.count)
    return work / max(len(content[1]) // np.dtype(content[0]).itemsize, 1)


def _steps(plans: Mapping[str, Plan]) -> Iterator[tuple[Step, list[Content]]]:
    for plan in plans.values():
        contents = {c.name: _content(c) for c in plan.layout.constants}
        for step in plan.steps:
            yield step, [contents[operand.storage] for operand in step.operands if operand.constant]


def _content(constant: Constant) -> Content:
    return constant.data.dtype.name, constant.data.tobytes()
