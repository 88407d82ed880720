"""Copy weights to RAM because flash is slow: at start-up, or where that pays more, during a run.

Constants whose bytes save the most cycles come first, as long as there is room next to the arena and the stacks. Banks
that hold nothing else are filled first. Copies that the user did not ask for must pay, and leave some room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.options import Weights
from baretorch.plan.memory.banks import room
from baretorch.plan.schedule import Step
from baretorch.plan.types import Constant, Plan
from baretorch.plan.weights.stream import Room, best_streams, can_stream, waiting_cycles
from baretorch.targets.flash import FlashPath
from baretorch.targets.types import Board, Chip

STATIC = 1024  # bytes that are left for the program's own data
RESERVE = 16384  # bytes that automatic choices also leave for later additions; less in small memories
WORTH, MARGIN = 0.95, 1000  # copies during a run must reduce the core's wait to this share, and by this many cycles
PAYS = 1.0  # cycles of a run that a byte must save for that
AT_ONCE = 4  # approximate number of outputs for which kernels use a weight they have read
ALIGNMENT, SECTION = 8, 16  # the largest alignment of an array, and that of the sections with weights and arena

Content = tuple[str, bytes]  # equal constants of all methods are one array


def place_weights(
    plans: Mapping[str, Plan],
    board: Board,
    weights: Weights,
    cores: int = 1,
    code: int = 0,
    arena: int | None = None,
) -> dict[str, Plan]:
    """Return the plans of all methods with the constants that are copied at start-up or during a run. The model's code
    takes `code` bytes of RAM. `arena` limits the arena."""
    chip = board.chip
    flash = chip.memory(chip.code)
    if weights is Weights.FLASH or (weights is Weights.AUTO and chip.flash_path is None):
        return dict(plans)
    if not flash.slow:
        raise CompileError(
            f"--weights {weights} gains nothing on {board.name}",
            have=f"{flash.name} is as fast as RAM",
            need='a chip whose flash is slower, with the reason in its TOML, as in slow = "QSPI flash behind a cache"',
        )
    if weights is Weights.STREAM:
        need_streams(plans, board, cores)
    (name, plan), *others = plans.items()
    path = chip.flash_path
    found = choose_resident(plans, chip, weights, cores, code)
    if weights is Weights.RAM or path is None or others or cores > 1 or not can_stream(plan, chip):
        return found

    def with_copies(planned: Plan) -> Plan | None:
        small = arena is None or planned.arena <= arena
        fits = small and min(_spare_bytes(_free({name: planned}, chip, cores, code), chip, path).values()) >= 0
        return choose_resident({name: planned}, chip, Weights.AUTO, cores, code)[name] if fits else None

    def reads(planned: Plan, step: Step) -> float:
        return _reading(planned, step, path)

    most = _free(plans, chip, cores, code)[chip.data] // 2
    better = best_streams(plan, found[name], Room(chip, path, with_copies, reads, most))
    if weights is Weights.STREAM:
        if better is None:
            raise CompileError(
                f"--weights stream: {plan.graph.name} has no weights to stream on {board.name}",
                have=f"{plan.weight_bytes():,} bytes of weights, of which the start-up code copies all that pay",
                try_="leave it out",
            )
        return {name: better}
    before, after = (waiting_cycles(p, chip, path, reads) for p in (found[name], better or found[name]))
    return {name: better} if better is not None and after < WORTH * before - MARGIN else found


def need_streams(plans: Mapping[str, Plan], board: Board, cores: int) -> None:
    """Raise CompileError if the board cannot stream weights."""
    plan, *others = plans.values()
    cluster = board.chip.cluster
    if cluster is not None and cluster.dma is not None:
        raise CompileError(
            f"--weights stream: {board.name} does that by itself",
            have=f"a DMA engine, which copies data that does not fit into {cluster.scratchpad} while the cores work",
            try_="leave it out",
        )
    if board.chip.dma is None:
        raise CompileError(
            f"--weights stream: {board.name} has no engine for it that is known here",
            need="a chip whose TOML has [dma], as those of pico and pico2w do",
        )
    if others or cores > 1 or not can_stream(plan, board.chip):
        kinds = {f"{len(plans)} methods": others, "two cores": cores > 1, "layers that may not run": True}
        raise CompileError(
            "--weights stream is for models of one method without branches, on one core",
            have=next(text for text, is_so in kinds.items() if is_so),
            try_="leave it out",
        )


def choose_resident(
    plans: Mapping[str, Plan], chip: Chip, weights: Weights, cores: int, code: int = 0
) -> dict[str, Plan]:
    """Return the plans with the banks of constants that start-up code copies."""
    path = chip.flash_path
    there = {_content(c) for p in plans.values() for c in p.layout.constants if c.name in p.layout.copies}
    reads = {content: times for content, times in _reads(plans).items() if content not in there}
    saved = _saved_cycles(plans, path) if path is not None else dict.fromkeys(reads, 0.0)
    order = sorted(reads, key=lambda content: (-saved[content], -reads[content], -len(content[1])))
    free = _free(plans, chip, cores, code)
    if weights is not Weights.RAM and path is not None:
        order = list(_select_paying(order, saved, path))
        free = _spare_bytes(free, chip, path)
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


def _free(plans: Mapping[str, Plan], chip: Chip, cores: int, code: int) -> dict[str, int]:
    """Return the free bytes of each RAM bank, with the bank that holds program data and code last."""
    fast = (m.name for m in chip.memories if m.kind == "ram" and not m.slow)
    names = sorted(fast, key=lambda name: name == chip.data)
    used = {
        name: max((b.size for p in plans.values() for b in p.layout.banks if b.name == name), default=0)
        for name in names
    }
    lent = max(sum(p.graph[name].bytes for name in p.layout.streamed | p.layout.lent) for p in plans.values())
    data = STATIC + lent + code  # images have the caller's buffers too
    own = {name: data if name == chip.data else 0 for name in names}
    copied = {name: max(p.layout.copied(name) for p in plans.values()) for name in names}
    return {name: room(chip, name, cores) - used[name] - own[name] - copied[name] - 2 * SECTION for name in names}


def _spare_bytes(free: Mapping[str, int], chip: Chip, path: FlashPath) -> dict[str, int]:
    """Return the free bytes that automatic choices may take, without banks that share a cache with flash."""
    cache = path.cache_of("data")
    beside = cache.beside if cache is not None else ()
    kept = min(RESERVE, chip.memory(chip.data).size // 4) if not chip.has_scratchpad else 0  # a scratchpad is for that
    return {name: left - (kept if name == chip.data else 0) for name, left in free.items() if name not in beside}


def _select_paying(order: Sequence[Content], saved: Mapping[Content, float], path: FlashPath) -> Iterator[Content]:
    """Yield constants that pay, until the rest fits in a part of the cache, where it stays from run to run."""
    rest = sum(len(data) for _, data in order)
    for content in order:
        if rest <= _cached_bytes(path) or saved[content] < PAYS:
            return
        yield content
        rest -= len(content[1])


def _cached_bytes(path: FlashPath) -> int:
    """Return the bytes of constants that a cache keeps: half of it, because code and constants compete for its sets."""
    cache = path.cache_of("data")
    return cache.size // 2 if cache is not None else 0


def _saved_cycles(plans: Mapping[str, Plan], path: FlashPath) -> dict[Content, float]:
    """Return the cycles of a run that each byte saves in RAM."""
    saved: dict[Content, float] = defaultdict(float)
    for step, contents in _steps(plans):
        times = _readings(step, contents, path)
        for content in contents:
            saved[content] += times * path.cycles_per_byte
    return saved


def _readings(step: Step, contents: Sequence[Content], path: FlashPath) -> float:
    """Return how often a layer reads its constants from flash: once if the cache keeps them, otherwise once per few
    outputs."""
    fits = sum(len(data) for _, data in contents) <= _cached_bytes(path)
    outputs = min((_times(step, content) for content in contents), default=0.0)  # outputs per constant
    return 1.0 if fits else max(1.0, outputs / AT_ONCE)


def _reading(plan: Plan, step: Step, path: FlashPath) -> float:
    """Return the cycles that a step waits for constants in flash. If these are few, the cache keeps them."""
    layout = plan.layout
    elsewhere = {*layout.copies, *(copy.source.storage for copy in plan.schedule.copies.values())}
    if sum(c.data.nbytes for c in layout.constants if c.name not in elsewhere) <= _cached_bytes(path):
        return 0.0
    there = [o.storage for o in step.operands if o.constant and not o.buffer and o.storage not in layout.copies]
    contents = [_content(layout.constant(name)) for name in there]
    return _readings(step, contents, path) * path.cycles_per_byte * sum(len(data) for _, data in contents)


def _reads(plans: Mapping[str, Plan]) -> dict[Content, float]:
    """Return how often a run uses each element of the constants."""
    reads: dict[Content, float] = defaultdict(float)
    for step, contents in _steps(plans):
        for content in contents:
            reads[content] += _times(step, content)
    return reads


def _times(step: Step, content: Content) -> float:
    """Return how often a layer uses each element of a constant, if its products or outputs use them evenly."""
    call = step.call
    work: int = max(call.op.macs(call.inputs, call.outputs), call.y.count)
    return work / max(len(content[1]) // np.dtype(content[0]).itemsize, 1)


def _steps(plans: Mapping[str, Plan]) -> Iterator[tuple[Step, list[Content]]]:
    for plan in plans.values():
        contents = {c.name: _content(c) for c in plan.layout.constants}
        for step in plan.steps:
            yield step, [contents[o.storage] for o in step.operands if o.constant and not o.buffer]


def _content(constant: Constant) -> Content:
    return constant.data.dtype.name, constant.data.tobytes()
