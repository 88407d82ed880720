"""Weights that a cluster's DMA engine brings to the scratchpad during a run.

The constants of a phase are one array, which one copy brings to a buffer of the arena; copies begin one or two phases
before, so that there is always one to make. Layers with more weights than a limit are cut along their output channels
into tiles, a phase each. The limit is found by trying: of the plans that fit, the one that takes least by a model of
transfers and work beside each other. The first phase has nothing before it: its constants are there from the start, as
all are where they fit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from baretorch.ir import Array
from baretorch.ops.cut import part_of
from baretorch.ops.kernel import Split
from baretorch.plan.cores import Team, on_cores
from baretorch.plan.cost import cycles
from baretorch.plan.select import Constants, make_step
from baretorch.plan.types import Buffer, Constant, Copy, Executor, Operand, Phase, Schedule, Step, View
from baretorch.targets.types import Dma

LIMITS = (24576, 16384, 12288, 8192, 6144, 4096, 2048)  # bytes of a tile's weights
AHEAD = (2, 1)  # phases
LEAST = 64  # bytes that are worth a copy
MEETING, BEGINNING = 40, 40  # cycles: of a phase, and of core 0 for a copy


def tiled(
    steps: Sequence[Step], limit: int, storage: Mapping[str, View], constants: Constants, team: Team
) -> Iterator[Phase]:
    """The steps in tiles with no more constants than that, and each tile on all cores."""
    for step in steps:
        for tile in _tiles(step, limit, storage, team):
            yield Phase(tuple(on_cores(tile, storage, constants, team)))


def _tiles(step: Step, limit: int, storage: Mapping[str, View], team: Team) -> list[Step]:
    weights = sum(o.size for o in step.operands if o.constant)
    call = step.call
    last = len(call.y.shape) - 1
    split = next((s for s in step.kernel.splits(call) if s.axis == last and not s.wide), None)
    if weights <= limit or split is None or step.guards or len(call.outputs) != 1:
        return [step]
    places = _places(call.y.shape[last], split, limit * call.y.shape[last] // weights, team.count)
    parts = [part_of(call, last, start, stop) for start, stop in pairwise((0, *places, call.y.shape[last]))]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or len(parts) == 1:
        return [step]
    tiles = []
    for number, part in enumerate(found):
        made = make_step(step.nodes[0], part.call, step.kernel, Constants(), storage)
        moves = iter((*part.offsets, part.at))
        operands = [o if o.constant else replace(o, offset=o.offset + next(moves)) for o in made.operands]
        rows = part.call.y.count // part.call.y.shape[-1]
        size = (rows - 1) * part.call.y_pitch + part.call.y.shape[-1]
        operands[-1] = replace(operands[-1], size=size * part.call.y.dtype.size)
        scratch = made.scratch and replace(made.scratch, name=f"{made.scratch.name}.{number}")
        tiles.append(replace(made, operands=tuple(operands), scratch=scratch))
    return tiles


def _places(channels: int, split: Split, most: int, cores: int) -> list[int]:
    """Where to cut into tiles of about the same size, and `most` channels if that can be; where that is enough, so that
    all cores get as many."""
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


def streamed(phases: Sequence[Phase], constants: Constants, team: Team, dma: Dma, ahead: int) -> Streamed:
    """With copies for all phases but the first, which begin so many phases before."""
    done, buffers = list(phases), list[Buffer]()
    known = dict(constants.known)
    count = 0
    copies: dict[int, list[Copy]] = {}
    for time, phase in enumerate(phases):
        steps = list(phase.steps)
        for kind in _kinds(phase, constants) if time else ():
            name = f"tile{count}_{kind}"
            places, data = _together(phase, constants, kind)
            if data.nbytes < LEAST:
                continue
            known[name] = Constant(name, data)
            target = Operand(name, f"{name} in L1", -(-data.nbytes // 4) * 4)
            source = Operand(name, name, data.nbytes, constant=True)
            copy = Copy(target.storage, source, target, channel=count % dma.channels)
            begin = max(0, time - ahead)
            copies.setdefault(begin, []).append(copy)
            buffers.append(Buffer(target.storage, target.size, begin, time))
            steps = [_reading(step, copy, places) for step in steps]
            count += 1
        done[time] = replace(phase, steps=tuple(steps))
    done = [replace(phase, copies=tuple(copies.get(time, ()))) for time, phase in enumerate(done)]
    executors = (*team.cores, Executor.DMA0) if count else team.cores
    used = {o.storage for phase in done for step in phase.steps for o in step.operands if o.constant}
    bare = {o.storage for phase in phases for step in phase.steps for o in step.operands if o.constant}
    kept = {name: c for name, c in known.items() if name in used or name not in bare}
    return Streamed(Schedule(tuple(done), executors), buffers, kept)


def _kinds(phase: Phase, constants: Constants) -> list[str]:
    """The types of numbers that a phase's constants are of."""
    return list(dict.fromkeys(constants.known[o.storage].data.dtype.name for o in _read(phase)))


def _read(phase: Phase) -> Iterator[Operand]:
    return (o for step in phase.steps for o in step.operands if o.constant)


def _together(phase: Phase, constants: Constants, kind: str) -> tuple[dict[str, int], Array]:
    """The constants of a phase one behind the other, and where each begins."""
    places, parts, at = dict[str, int](), [], 0
    for o in _read(phase):
        data = constants.known[o.storage].data.reshape(-1)
        if data.dtype.name == kind and o.storage not in places:
            padding = -data.nbytes % 4 // data.itemsize
            places[o.storage] = at
            parts.append(np.pad(data, (0, padding)))
            at += parts[-1].nbytes
    return places, np.concatenate(parts)


def _reading(step: Step, copy: Copy, places: Mapping[str, int]) -> Step:
    """Its constants from what was copied."""
    operands = tuple(
        replace(o, storage=copy.source.storage, offset=places[o.storage], buffer=copy.target.storage)
        if o.constant and o.storage in places
        else o
        for o in step.operands
    )
    return replace(step, operands=operands, awaits=(*step.awaits, copy.name))


def modelled(schedule: Schedule, dma: Dma) -> int:
    """About how many cycles a run takes: each phase as long as its longest step, and no earlier than its copies."""
    now = free = 0.0
    ends: dict[str, float] = {}
    for phase in schedule.phases:
        now = max([now, *(ends[name] for step in phase.steps for name in step.awaits)]) + MEETING
        for copy in phase.copies:
            now += BEGINNING
            free = max(free, now + dma.start_cycles) + copy.target.size / dma.bytes_per_cycle
            ends[copy.name] = free
        now += max(cycles(step.call, step.kernel) for step in phase.steps)
    return round(now)


def waits(schedule: Schedule, slow: Collection[str], each: int) -> int:
    """About how many cycles of a run cores wait because they read and write buffers in slower memory: they write bytes,
    and read words, some of them again."""

    def of(step: Step) -> float:
        written = sum(t.bytes for t, o in zip(step.call.outputs, step.writes, strict=True) if o.storage in slow)
        far = {o.tensor for o in step.reads if o.storage in slow}
        read = sum(t.bytes for t in step.call.inputs if t.name in far)
        return each * (written + read / 2)

    return round(sum(max(map(of, phase.steps)) for phase in schedule.phases))
