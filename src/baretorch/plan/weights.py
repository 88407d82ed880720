"""Weights that are copied to RAM when the chip starts, because its flash is slow.

What is read most often in a run comes first, as far as there is room beside the arena and the stacks. Banks that hold
nothing else are filled first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.plan.banks import room
from baretorch.plan.types import Constant, Plan
from baretorch.targets.types import Board, Chip

STATIC = 1024  # bytes that are left for the program's own data
ALIGNMENT, SECTION = 8, 16  # of an array at most, and of the sections that hold weights and arena

Content = tuple[str, bytes]  # equal constants of all methods are one array


def in_ram(plans: Mapping[str, Plan], board: Board, cores: int = 1) -> dict[str, Plan]:
    """The plans of all methods, with the banks of those constants that are copied."""
    chip = board.chip
    flash = chip.memory(chip.code)
    if not flash.slow:
        raise CompileError(
            f"--weights ram gains nothing on {board.name}",
            have=f"{flash.name} answers as fast as RAM",
            need='a chip whose flash is slower: its TOML says why, as in slow = "QSPI flash behind a cache"',
        )
    free = _free(plans, chip, cores)
    reads = _reads(plans)
    banks: dict[Content, str] = {}
    for content, _ in sorted(reads.items(), key=lambda row: -row[1]):
        size = -(-len(content[1]) // ALIGNMENT) * ALIGNMENT
        bank = next((name for name, left in free.items() if size <= left), None)
        if bank is not None:
            banks[content] = bank
            free[bank] -= size
    return {
        name: replace(plan, layout=replace(plan.layout, copies=_copies(plan.layout.constants, banks)))
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
    return {name: room(chip, name, cores) - used[name] - own[name] - 2 * SECTION for name in names}


def _reads(plans: Mapping[str, Plan]) -> dict[Content, float]:
    """How often a run reads each byte of the constants: the more, the more it helps. A layer's products, or else its
    outputs, are shared out evenly over each of its constants."""
    reads: Counter[Content] = Counter()
    for plan in plans.values():
        contents = {c.name: _content(c) for c in plan.layout.constants}
        for step in plan.steps:
            call = step.call
            work = max(call.op.macs(call.inputs, call.outputs), call.y.count)
            for operand in step.operands:
                if operand.constant:
                    size = plan.layout.constant(operand.storage).data.size
                    reads[contents[operand.storage]] += work / max(size, 1)
    return dict(reads)


def _content(constant: Constant) -> Content:
    return constant.data.dtype.name, constant.data.tobytes()
