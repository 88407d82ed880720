"""The tiles of a cluster's layers with which a run takes least, of all that fit its scratchpad: found by trying, with a
model of transfers and work beside each other.

First all activations may lie where there is room, and cores read slower memory as they must. If some do, those layers
are cut into tiles of rows next, and the better of both is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from baretorch.ops.int8.qsums import QSums
from baretorch.plan.cluster.concurrent import pipelined
from baretorch.plan.cluster.row_tiles import InRows, evenly, movable, ways
from baretorch.plan.cluster.tiles import Streamed, Tile, modelled, reading, streamed, tiled, together, waits
from baretorch.plan.cores import Team, on_cores
from baretorch.plan.memory.banks import Placed
from baretorch.plan.schedule import Phase, Schedule, Step, View
from baretorch.plan.select import Constants
from baretorch.plan.types import Buffer, LayerTiles, Tiles
from baretorch.targets.parts import Cluster

LIMITS = (24576, 16384, 12288, 8192, 6144, 4096, 2048)  # bytes of a tile's weights
AHEAD = ((2, False), (1, False), (2, True))  # phases, and whether one more where these are shorter than the copy
ROWS = ((24576, 24576), (24576, 6144), (12288, 12288), (12288, 3072), (6144, 6144))  # bytes of a tile's rows: where
# some are read, and where they are made only; finer there, so that the next layer may begin with what is home


INPUTS = "input channels"  # tiles along these


@dataclass(frozen=True)
class Planned:
    """A schedule, and where its buffers lie."""

    schedule: Schedule
    buffers: list[Buffer]
    placed: Placed
    lower_bound: int


class Place(Protocol):
    """Gives the buffers of a schedule their place: so many bytes of the scratchpad are `taken`, and some buffers lie in
    the bank that `far` says. What units touch lies where they reach, unless it is only asked what has no room there
    (`anywhere`). None if it is plain that what must lie in the scratchpad has no room there."""

    def __call__(
        self, schedule: Schedule, more: Sequence[Buffer], taken: int, far: Mapping[str, str], anywhere: bool
    ) -> Planned | None: ...


@dataclass(frozen=True)
class Choice:
    planned: Planned
    constants: Constants
    tiles: Tiles

    def is_far(self, scratchpad: str) -> bool:
        """Whether some buffers lie elsewhere."""
        return any(b.bank != scratchpad for b in self.planned.placed.buffers)


def without_copies(
    steps: Sequence[Step], storage: Mapping[str, View], kept: Collection[str], team: Team
) -> Iterator[tuple[Schedule, Constants]]:
    """The steps on cores and units, for which all constants are there from the start, the quickest first: as cores
    share them evenly, and as they are; with cores that work while units do, in tiles of rows for that."""
    even = [part for step in steps for part in evenly(step, storage, team)]
    ways = [(even, False), (steps, False)] if team.count > 1 else []
    if any(step.kernel.unit for step in steps):
        ways += [(some, True) for some in (pipelined(steps, storage, kept, team), even, steps)]
    found = []
    for some, meanwhile in ways:
        constants = Constants(slices=True, packs=team.packs)
        tiles = [Tile(step, Phase(tuple(on_cores(step, storage, constants, team)))) for step in some]
        phases = tuple(tile.phase for tile in (together(tiles) if meanwhile else tiles))
        schedule = Schedule(phases, team.cores)
        end = max(modelled(schedule, None), default=0.0)  # a model of views alone has no phases
        found.append((end, schedule, constants))
    return ((schedule, constants) for _, schedule, constants in sorted(found, key=lambda one: one[0]))


@dataclass(frozen=True)
class _Candidate:
    limit: int
    rows: int
    ahead: int
    made: Streamed
    tiles: list[Tile]
    ends: list[float]  # of its phases, modelled

    @property
    def cycles(self) -> int:
        return round(self.ends[-1])


@dataclass(frozen=True)
class Workshop:
    """What tiles are made of, and where they must fit."""

    steps: Sequence[Step]
    storage: Mapping[str, View]
    kept: Collection[str]  # buffers that are read after the run
    team: Team
    cluster: Cluster
    room: int  # bytes of the scratchpad
    spare: int  # and of that for others
    place: Place

    def best(self) -> Choice | None:
        """None if nothing fits. What cores share evenly takes more scratch: where that has no room, or activations have
        none beside it, layers are tried as they are too."""
        steps = [part for step in self.steps for part in evenly(step, self.storage, self.team)]
        even = replace(self, steps=steps)._best_of_steps(LIMITS)
        some = [even]
        if even is None or even.is_far(self.cluster.scratchpad):
            some.append(self._best_of_steps([even.tiles.limit] if even is not None else LIMITS))
        if self.units:
            in_rows = pipelined(self.steps, self.storage, self.kept, self.team)
            some.append(replace(self, steps=in_rows)._best_of_steps(LIMITS))
        found = [choice for choice in some if choice is not None]
        return min(found, key=lambda choice: choice.tiles.cycles, default=None)

    @property
    def units(self) -> bool:
        """Whether some compute beside the cores."""
        return any(step.kernel.unit for step in self.steps)

    def _best_of_steps(self, limits: Sequence[int]) -> Choice | None:
        plain = list(self._candidates(limits))
        found = self._best(plain, {})
        crowded = found or (self._best(plain, {}, anywhere=True) if self.units else None)
        if crowded is None:
            return None
        near = self.cluster.scratchpad
        banks = {b.name: b.bank for b in crowded.planned.placed.buffers if b.bank != near}
        fewer = [limit for limit in limits if limit <= crowded.tiles.limit][:2]
        rows = self._in_rows(banks, fewer)
        if rows is None and found is None:  # units need all that is not far beside it: their other operands go too
            beside = {o.storage for step in self._touching(banks) for o in step.uses}
            rows = self._in_rows({**dict.fromkeys(sorted(beside), next(iter(banks.values()), near)), **banks}, fewer)
        return found if rows is None or (found and found.tiles.cycles <= rows.tiles.cycles) else rows

    def _in_rows(self, banks: Mapping[str, str], limits: Sequence[int]) -> Choice | None:
        """With layers in tiles of rows that touch buffers in other banks."""
        far = movable(self.steps, banks, self.kept)
        own = [id(step) for step in self._touching(far)]
        every = {n: ways(step, far, self.storage, self.team) for n, step in enumerate(self.steps) if id(step) in own}
        return self._best(self._candidates(limits, every), {name: banks[name] for name in sorted(far)}) if far else None

    def _touching(self, names: Collection[str]) -> list[Step]:
        return [step for step in self.steps if any(o.storage in names for o in step.uses)]

    def _candidates(
        self, limits: Sequence[int], every: Mapping[int, Sequence[InRows]] | None = None
    ) -> Iterator[_Candidate]:
        dma = self.cluster.dma
        assert dma is not None
        largest = max((sum(o.size for o in step.operands if o.constant) for step in self.steps), default=0)
        for limit in (limit for limit in limits if limit < largest or limit == limits[0]):
            for read, made in ROWS if every else ((0, 0),):
                own = {
                    n: next((way for way in each if way.bytes <= (read if way.reads else made)), None)
                    for n, each in (every or {}).items()
                }
                chosen = {n: way for n, way in own.items() if way is not None}
                if len(chosen) < len(own):
                    continue
                packed = Constants(slices=True, packs=self.team.packs)
                tiles = list(tiled(self.steps, limit, chosen, self.storage, packed, self.team))
                for some in (together(tiles), tiles) if self.units else (tiles,):
                    brought = reading(some, packed)
                    for ahead, early in AHEAD:
                        found = streamed(brought, self.team, dma, ahead, early)
                        if found is not None and found.schedule.copies:
                            yield _Candidate(limit, read, ahead, found, some, modelled(found.schedule, dma))

    def _best(self, candidates: Iterable[_Candidate], far: Mapping[str, str], anywhere: bool = False) -> Choice | None:
        tried: list[tuple[int, int, int, int]] = []
        best: Choice | None = None
        for one in sorted(candidates, key=lambda c: (c.cycles, -c.rows, -c.limit, c.ahead)):
            if best is not None and one.cycles >= best.tiles.cycles:
                break
            constants = Constants(known=one.made.constants)
            copied = sum(copy.source.size for copy in one.made.schedule.copies.values() if copy.source.constant)
            resident = constants.bytes - copied
            planned = self.place(one.made.schedule, one.made.buffers, self.spare + resident, far, anywhere)
            if planned is None or planned.placed.bytes_in(self.cluster.scratchpad) + resident > self.room:
                continue
            slow = {b.name for b in planned.placed.buffers if b.bank != self.cluster.scratchpad}
            cycles = one.cycles + waits(one.made.schedule, slow, self.cluster.slow_cycles)
            tried.append((one.limit, one.rows, one.ahead, cycles))
            if best is None or cycles < best.tiles.cycles:
                best = Choice(planned, constants, _told(one, cycles))
        return best and replace(best, tiles=replace(best.tiles, tried=tuple(tried)))


def _told(one: _Candidate, cycles: int) -> Tiles:
    """The choice, for people."""
    copies = one.made.schedule.copies.values()
    weights = sum(copy.source.size for copy in copies if copy.source.constant)
    moved = sum(copy.source.size for copy in copies if not copy.source.constant)
    layers = tuple(_layers(one))
    return Tiles(one.limit, one.rows, one.ahead, len(copies), weights, moved, cycles, layers)


def _layers(one: _Candidate) -> Iterator[LayerTiles]:
    """What is told of each layer. A phase's time is that of its cores' layer."""
    own: dict[str, list[tuple[int, Step]]] = {}
    for time, tile in enumerate(one.tiles):
        for step in (*tile.beside, tile.whole):
            own.setdefault(step.layer, []).append((time, step))
    for layer, parts in own.items():
        phase = one.made.schedule.phases[parts[0][0]]
        used = {o.buffer for step in phase.steps if step.layer == layer for o in step.operands if o.buffer}
        bytes_ = sum(b.size for b in one.made.buffers if b.name in used)
        same = len({step.reads[0].offset for _, step in parts if step.reads}) < 2  # tiles of channels read the same
        axis = "" if len(parts) == 1 else "channels" if same else "rows"
        axis = INPUTS if any(isinstance(step.call.op, QSums) for _, step in parts) else axis
        times = [time for time, step in parts if one.tiles[time].whole is step]
        took = sum(one.ends[time] - (one.ends[time - 1] if time else 0.0) for time in times)
        yield LayerTiles(layer, axis, len(parts), bytes_, round(took))
