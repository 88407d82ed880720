"""Cut the layers of a cluster into tiles, one phase each, whose data a DMA engine copies to the scratchpad.

The constants of a phase are one array, which one copy brings to a buffer of the arena. Copies begin one or two phases
ahead, so that one is always under way. Layers with more weights than a limit are cut along their output channels, and
layers that use slower memory along their rows (row_tiles.py). No phase precedes the first, so its constants are in the
scratchpad from the start, as all are if they fit. choose_tiles.py chooses the limits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers.cut import part_of
from baretorch.ops.helpers.executor import DMA
from baretorch.ops.helpers.kernel import Split
from baretorch.plan.cluster.concurrent import group_phases, without_waiting
from baretorch.plan.cluster.cost import estimate_cycles
from baretorch.plan.cluster.row_tiles import InRows, Traffic, carry
from baretorch.plan.cluster.team import ClusterTeam
from baretorch.plan.constants import Constants
from baretorch.plan.schedule import BackgroundCopy, Operand, Phase, Schedule, Step, View
from baretorch.plan.shares import make_part
from baretorch.plan.types import Buffer, Constant
from baretorch.targets.parts import Dma

LEAST = 64  # bytes that are worth a copy
MEETING, BEGINNING = 40, 40  # cycles: of a phase, and of core 0 for a copy


@dataclass(frozen=True)
class Tile:
    """A part of a layer, or all of it, the phase in which cores compute it, and what a unit computes meanwhile
    (`beside`)."""

    whole: Step
    phase: Phase
    beside: tuple[Step, ...] = ()


def cut_into_tiles(
    steps: Sequence[Step],
    limit: int,
    first_limit: int,
    rows: Mapping[int, InRows],
    storage: Mapping[str, View],
    constants: Constants,
    team: ClusterTeam,
) -> Iterator[Tile]:
    """Cut the steps into tiles of at most `limit` bytes of weights, the first layer into tiles of at most
    `first_limit` bytes, and steps whose number is in `rows` as that says."""
    first = next((number for number, step in enumerate(steps) if any(o.constant for o in step.operands)), None)
    for number, step in enumerate(steps):
        own, most = rows.get(number), first_limit if number == first else limit
        for tile in own.tiles if own else _in_channels(step, most, storage, team):
            yield Tile(tile, Phase(tuple(team.shares(tile, storage, constants))))


def join_units(tiles: Sequence[Tile]) -> list[Tile]:
    """Move tiles of units to the phases of cores that need not wait for them."""
    found = []
    for group in group_phases([tile.whole for tile in tiles]):
        *units, main = (tiles[i] for i in group)
        started = (*(without_waiting(step) for unit in units for step in unit.phase.steps), *main.phase.steps)
        found.append(Tile(main.whole, Phase(started), tuple(unit.whole for unit in units)))
    return found


def _in_channels(step: Step, limit: int, storage: Mapping[str, View], team: ClusterTeam) -> list[Step]:
    weights = sum(o.size for o in step.operands if o.constant)
    call = step.call
    last = len(call.y.shape) - 1
    renews = bool(step.kernel.renews)  # it updates sums in place
    split = next((s for s in step.kernel.splits(call) if s.axis == last and (renews or not s.wide)), None)
    if weights <= limit or not weights or split is None or step.guards or len(call.outputs) != 1:
        return [step]
    most = limit * call.y.shape[last] // weights
    places = tuple(_places(call.y.shape[last], split, most, team.count))
    known = team.memo.tiles
    if (step, places) not in known:
        known[step, places] = _cut(step, last, places, split, storage, team)
    return known[step, places]


def _cut(
    step: Step, last: int, places: Sequence[int], split: Split, storage: Mapping[str, View], team: ClusterTeam
) -> list[Step]:
    """Cut a step into tiles at these channels; return it unchanged if that is impossible."""
    call = step.call
    ends = pairwise((0, *places, call.y.shape[last]))
    parts = [part_of(call, last, start, stop, split.wide) for start, stop in ends]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or len(parts) == 1:
        return [step]
    tiles = []
    for number, part in enumerate(found):
        made = make_part(step, part, str(number), storage, Constants(packs=team.memo.packs))
        operands = list(made.operands)
        rows = part.call.y.count // part.call.y.shape[-1]
        size = ((rows - 1) * part.call.y_pitch + part.call.y.shape[-1]) * part.call.y.dtype.size
        for i in (-1, *(i for i, _ in step.kernel.renews)):
            operands[i] = replace(operands[i], size=size)
        tiles.append(replace(made, operands=tuple(operands)))
    return tiles


def _places(channels: int, split: Split, most: int, cores: int) -> list[int]:
    """Return where to cut into tiles of about the same size and at most `most` channels, if possible so that all cores
    get the same number."""
    unit = split.step * cores if most >= split.step * cores else split.step
    units = -(-channels // unit)
    count = -(-units // max(1, most // unit))
    return [unit * (units * i // count) for i in range(1, count)]


@dataclass(frozen=True)
class Streamed:
    """A schedule with copies, the buffers that they fill, and the constants as they are stored."""

    schedule: Schedule
    buffers: list[Buffer]
    constants: dict[str, Constant]


@dataclass
class Brought:
    """A copy of constants, and the first and the last phase that read them."""

    copy: BackgroundCopy
    first: int
    last: int


@dataclass(frozen=True)
class Reading:
    """Tiles whose phases, except the first, read constants from copies, and those constants."""

    tiles: Sequence[Tile]
    phases: list[Phase]
    known: dict[str, Constant]
    brought: list[Brought]

    @cached_property
    def starts(self) -> list[float]:
        """The estimated starts of phases, if none waits for a copy."""
        return [0.0, *accumulate(MEETING + _cycles(phase) for phase in self.phases)]

    def is_short(self, one: Brought, begin: int, dma: Dma) -> bool:
        """Return whether the phases from `begin` to the one that reads a copy take less time than the copy."""
        takes = dma.start_cycles + one.copy.target.size / dma.bytes_per_cycle
        return self.starts[one.first] - self.starts[begin] < takes


def bring_constants(tiles: Sequence[Tile], constants: Constants) -> Reading:
    """Let the phases of tiles read their constants from copies."""
    found = Reading(tiles, [tile.phase for tile in tiles], dict(constants.known), [])
    kinds = {name: c.data.dtype.name for name, c in constants.known.items()}
    for kind in dict.fromkeys(kinds.values()):
        _bring(found, {name for name, its in kinds.items() if its == kind}, kind)
    return found


def add_copies(what: Reading, team: ClusterTeam, dma: Dma, ahead: int, early: bool = False) -> Streamed | None:
    """Add the copies; None if that is impossible. Copies of weights begin `ahead` phases early, and if that is too
    short for one and it may be `early`, one more."""
    tiles, traffic = what.tiles, Traffic()
    for one in what.brought:
        target, begin = one.copy.target, max(0, one.first - ahead)
        begin -= bool(early and begin and what.is_short(one, begin, dma))
        traffic.add(one.copy, begin, one.first, Buffer(target.storage, target.size, begin, one.last))
    if not carry([(*tile.beside, tile.whole) for tile in tiles], traffic):
        return None
    done = traffic.with_copies(what.phases, dma.channels)
    if done is None:
        return None
    executors = (*team.cores, DMA) if traffic else team.cores
    used = {o.storage for phase in done for step in phase.steps for o in step.operands if o.constant}
    bare = {o.storage for tile in tiles for step in tile.phase.steps for o in step.operands if o.constant}
    kept = {name: c for name, c in what.known.items() if name in used or name not in bare}
    return Streamed(Schedule(done, executors), traffic.buffers, kept)


def _bring(found: Reading, names: Collection[str], kind: str) -> None:
    """Bring the constants with these names, which have one type, to the phases that read them. Constants that the next
    phase needs too stay."""
    phases, known, copy, places = found.phases, found.known, None, dict[str, int]()
    for time, phase in enumerate(phases):
        own = [o.storage for o in _read(phase) if o.storage in names]
        if not time or not own:
            continue
        if copy is not None and places.keys() >= set(own) and found.brought[-1].last == time - 1:
            found.brought[-1].last = time
        else:
            places, data = _concatenate(own, known)
            if data.nbytes < LEAST:
                copy = None
                continue
            name = f"tile{len(found.brought)}_{kind}"
            known[name] = Constant(name, data)
            target = Operand(name, f"{name} in L1", -(-data.nbytes // 4) * 4)
            copy = BackgroundCopy(target.storage, Operand(name, name, data.nbytes, constant=True), target)
            found.brought.append(Brought(copy, time, time))
        phases[time] = replace(phase, steps=tuple(_read_from_copy(step, copy, places) for step in phase.steps))


def _read(phase: Phase) -> Iterator[Operand]:
    return (o for step in phase.steps for o in step.operands if o.constant and not o.buffer)


def _concatenate(names: Sequence[str], known: Mapping[str, Constant]) -> tuple[dict[str, int], Array]:
    """Concatenate constants, and return where each begins."""
    places, parts, at = dict[str, int](), [], 0
    for name in dict.fromkeys(names):
        data = known[name].data.reshape(-1)
        places[name] = at
        more = -data.nbytes % 4 // data.itemsize
        parts += [data, np.zeros(more, data.dtype)] if more else [data]
        at += data.nbytes + more * data.itemsize
    return places, np.concatenate(parts)


def _read_from_copy(step: Step, copy: BackgroundCopy, places: Mapping[str, int]) -> Step:
    """Let a step read its constants from a copy."""
    if not any(o.constant and o.storage in places for o in step.operands):
        return step
    operands = tuple(
        replace(o, storage=copy.source.storage, offset=places[o.storage] + o.offset, buffer=copy.target.storage)
        if o.constant and o.storage in places
        else o
        for o in step.operands
    )
    return replace(step, operands=operands)


def end_times(schedule: Schedule, dma: Dma | None) -> list[float]:
    """Estimate when each phase ends: it takes as long as its longest step, and begins when its data has arrived."""
    now = free = 0.0
    ends: dict[str, float] = {}
    found = []
    for phase in schedule.phases:
        now = max([now, *(ends[name] for step in phase.steps for name in step.awaits)]) + MEETING
        for copy in phase.copies:
            assert dma is not None
            now += BEGINNING
            free = max(free, now + dma.start_cycles) + copy.target.size / dma.bytes_per_cycle
            ends[copy.name] = free
        now += _cycles(phase)
        found.append(now)
    return found


def _cycles(phase: Phase) -> float:
    return max(estimate_cycles(step.call, step.kernel) for step in phase.steps)


def slow_cycles(schedule: Schedule, slow: Collection[str], each: int) -> int:
    """Estimate the cycles that cores wait because they use buffers in slower memory: they write bytes, and read words,
    some of them repeatedly."""

    def of(step: Step) -> float:
        written = sum(t.bytes for t, o in zip(step.call.outputs, step.writes, strict=True) if _far(o))
        far = {o.tensor for o in step.reads if _far(o)}
        read = sum(t.bytes for t in step.call.inputs if t.name in far)
        return each * (written + read / 2)

    def _far(o: Operand) -> bool:
        return o.storage in slow and not o.buffer

    return round(sum(max(map(of, phase.steps)) for phase in schedule.phases))
