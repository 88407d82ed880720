"""Search for the tiles of a cluster's layers with which a run takes the fewest modelled cycles.

At first, all activations may be wherever there is room, and cores read slower memory directly. If some are in slower
memory, the layers that use them are cut into tiles of rows next, and the better of both is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from baretorch.plan.cluster.concurrent import pipeline_rows
from baretorch.plan.cluster.row_tiles import InRows, cut_evenly, find_row_tiles, movable_buffers
from baretorch.plan.cluster.team import ClusterTeam
from baretorch.plan.cluster.tiles import (
    Streamed,
    Tile,
    add_copies,
    bring_constants,
    cut_into_tiles,
    end_times,
    join_units,
    slow_cycles,
)
from baretorch.plan.cluster.types import LayerTiles, Tiles
from baretorch.plan.constants import Constants
from baretorch.plan.memory.banks import Wishes
from baretorch.plan.problem import Placement, Problem, Solution
from baretorch.plan.schedule import Phase, Schedule, Step
from baretorch.plan.types import Buffer
from baretorch.targets.parts import Cluster

LIMITS = (24576, 16384, 12288, 8192, 6144, 4096, 2048)  # bytes of a tile's weights
FIRST = 14336  # bytes of weights of the first layer's tiles, if larger: the first tile is there from the start
AHEAD = ((2, False), (1, False), (2, True))  # phases ahead, and whether one more if these are shorter than the copy
ROWS = ((24576, 24576), (24576, 6144), (12288, 12288), (12288, 3072), (6144, 6144))  # bytes of a tile's rows: if
# it reads some from slower memory, and if it only writes them there; finer then, so that the next layer can start


INPUTS = "input channels"  # tiles along these


@dataclass(frozen=True)
class TileChoice:
    """Tiles, and a placement for them."""

    placement: Placement
    constants: Constants
    tiles: Tiles

    def is_far(self, scratchpad: str) -> bool:
        """Return whether some buffers are elsewhere."""
        return any(b.bank != scratchpad for b in self.placement.placed.buffers)


@dataclass(frozen=True)
class _Candidate:
    limit: int
    rows: int
    ahead: int
    made: Streamed
    tiles: list[Tile]
    ends: list[float]  # modelled ends of its phases

    @property
    def cycles(self) -> int:
        return round(self.ends[-1])


@dataclass(frozen=True)
class TileSearch:
    """Searches for the tiles of some steps, which have `room` bytes of the scratchpad; `spare` others are reserved."""

    problem: Problem
    steps: Sequence[Step]
    team: ClusterTeam
    cluster: Cluster
    room: int
    spare: int

    def without_copies(self) -> Iterator[tuple[Schedule, Constants]]:
        """Yield schedules whose constants are in the scratchpad from the start, the quickest first.

        The cores share each layer evenly, or as it is. If there are units, cores also work while these do, on tiles of
        rows.
        """
        even = self._in_even_rows()
        ways = [(even, False), (self.steps, False)] if self.team.count > 1 else []
        if self.units:
            ways += [(some, True) for some in (self._in_pipelined_rows(), even, self.steps)]
        found = []
        for steps, meanwhile in ways:
            constants = self._no_constants()
            shares = [(step, tuple(self.team.shares(step, self.problem.storage, constants))) for step in steps]
            tiles = [Tile(step, Phase(parts)) for step, parts in shares]
            phases = tuple(tile.phase for tile in (join_units(tiles) if meanwhile else tiles))
            schedule = Schedule(phases, self.team.cores)
            end = max(end_times(schedule, None), default=0.0)  # a model of views alone has no phases
            found.append((end, schedule, constants))
        return ((schedule, constants) for _, schedule, constants in sorted(found, key=lambda one: one[0]))

    def best(self) -> Solution | None:
        """Return the quickest solution with tiles; None if nothing fits.

        Layers that are shared evenly take more scratch. Where there is no room for it, or for activations next to it,
        layers are tried as they are too.
        """
        even = replace(self, steps=self._in_even_rows())._best_of_steps(LIMITS)
        some = [even]
        if even is None or even.is_far(self.cluster.scratchpad):
            some.append(self._best_of_steps([even.tiles.limit] if even is not None else LIMITS))
        if self.units:
            some.append(replace(self, steps=self._in_pipelined_rows())._best_of_steps(LIMITS))
        found = [choice for choice in some if choice is not None]
        best = min(found, key=lambda choice: choice.tiles.cycles, default=None)
        return None if best is None else Solution(best.placement, best.constants, best.tiles)

    def _in_even_rows(self) -> list[Step]:
        return [part for step in self.steps for part in cut_evenly(step, self.problem.storage, self.team)]

    def _in_pipelined_rows(self) -> list[Step]:
        return pipeline_rows(self.steps, self.problem.storage, self.problem.kept, self.team)

    def _no_constants(self) -> Constants:
        return Constants(slices=True, packs=self.team.memo.packs)

    @property
    def units(self) -> bool:
        """Report whether units compute while the cores do."""
        return any(step.kernel.unit for step in self.steps)

    def _best_of_steps(self, limits: Sequence[int]) -> TileChoice | None:
        plain = list(self._candidates(limits))
        found = self._best(plain, {})
        crowded = found or (self._best(plain, {}, anywhere=True) if self.units else None)
        if crowded is None:
            return None
        scratchpad = self.cluster.scratchpad
        banks = {b.name: b.bank for b in crowded.placement.placed.buffers if b.bank != scratchpad}
        fewer = [limit for limit in limits if limit <= crowded.tiles.limit][:2]
        rows = self._in_rows(banks, fewer)
        if rows is None and found is None:  # units reach the scratchpad only, so their other operands move too
            beside = {o.storage for step in self._touching(banks) for o in step.uses}
            others = dict.fromkeys(sorted(beside), next(iter(banks.values()), scratchpad))
            rows = self._in_rows({**others, **banks}, fewer)
        return found if rows is None or (found and found.tiles.cycles <= rows.tiles.cycles) else rows

    def _in_rows(self, banks: Mapping[str, str], limits: Sequence[int]) -> TileChoice | None:
        """Choose tiles when layers that use buffers in other banks are cut into rows."""
        far = movable_buffers(self.steps, banks, self.problem.kept)
        own, storage = set(self._touching(far)), self.problem.storage
        every = {n: find_row_tiles(step, far, storage, self.team) for n, step in enumerate(self.steps) if step in own}
        return self._best(self._candidates(limits, every), {name: banks[name] for name in sorted(far)}) if far else None

    def _touching(self, names: Collection[str]) -> list[Step]:
        return [step for step in self.steps if any(o.storage in names for o in step.uses)]

    def _candidates(
        self, limits: Sequence[int], every: Mapping[int, Sequence[InRows]] | None = None
    ) -> Iterator[_Candidate]:
        dma = self.cluster.dma
        assert dma is not None
        largest = max((sum(o.size for o in step.operands if o.constant) for step in self.steps), default=0)
        useful = [n for n in limits if n < largest or n == limits[0]]
        for limit, first_limit in ((n, first) for n in useful for first in self._first_limits(n)):
            for read, made in ROWS if every else ((0, 0),):
                own = {
                    n: next((way for way in each if way.bytes <= (read if way.reads else made)), None)
                    for n, each in (every or {}).items()
                }
                chosen = {n: way for n, way in own.items() if way is not None}
                if len(chosen) < len(own):
                    continue
                packed, storage = self._no_constants(), self.problem.storage
                tiles = list(cut_into_tiles(self.steps, limit, first_limit, chosen, storage, packed, self.team))
                for some in (join_units(tiles), tiles) if self.units else (tiles,):
                    brought = bring_constants(some, packed)
                    for ahead, early in AHEAD:
                        found = add_copies(brought, self.team, dma, ahead, early)
                        if found is not None and found.schedule.copies:
                            yield _Candidate(limit, read, ahead, found, some, end_times(found.schedule, dma))

    def _first_limits(self, limit: int) -> Iterator[int]:
        """Yield the limits for the first layer's tiles. FIRST lets small tiles at the end leave little work after the
        last copy, but takes room that activations may need."""
        own = (sum(o.size for o in step.operands if o.constant) for step in self.steps)
        if limit < FIRST and next(filter(None, own), 0) > limit:
            yield FIRST
        yield limit

    def _best(
        self, candidates: Iterable[_Candidate], far: Mapping[str, str], anywhere: bool = False
    ) -> TileChoice | None:
        """Return the quickest candidate that fits, with some buffers in the bank that `far` names. What units use is
        where they reach; `anywhere` asks only what has no room there."""
        tried: list[tuple[int, int, int, int]] = []
        best: TileChoice | None = None
        for one in sorted(candidates, key=lambda c: (c.cycles, -c.rows, -c.limit, c.ahead)):
            if best is not None and one.cycles >= best.tiles.cycles:
                break
            constants = Constants(known=one.made.constants)
            copied = sum(copy.source.size for copy in one.made.schedule.copies.values() if copy.source.constant)
            resident = constants.bytes - copied
            schedule, copies = one.made.schedule, one.made.buffers
            wishes = near_wishes(self.problem, schedule, copies, far, anywhere)
            placement = self.problem.place_if_room(schedule, wishes, copies, self.spare + resident)
            if placement is None or placement.placed.bytes_in(self.cluster.scratchpad) + resident > self.room:
                continue
            slow = {b.name for b in placement.placed.buffers if b.bank != self.cluster.scratchpad}
            cycles = one.cycles + slow_cycles(schedule, slow, self.cluster.slow_cycles)
            tried.append((one.limit, one.rows, one.ahead, cycles))
            if best is None or cycles < best.tiles.cycles:
                best = TileChoice(placement, constants, _describe(one, cycles))
        return best and replace(best, tiles=replace(best.tiles, tried=tuple(tried)))


def near_wishes(
    problem: Problem,
    schedule: Schedule,
    copies: Sequence[Buffer] = (),
    far: Mapping[str, str] | None = None,
    anywhere: bool = False,
) -> Wishes:
    """Return the preferred banks of a schedule's buffers. Scratch and buffers for copies prefer memory that all
    cores access fast; operands of units are where the units reach, or `anywhere`. Buffers in `far` are in the bank
    named there."""
    names = [b.name for b in copies]
    names += [step.scratch.name for step in schedule.steps if step.scratch]
    theirs = [step for step in schedule.steps if step.kernel.unit and not anywhere]
    names += [o.storage for step in theirs for o in step.uses if not o.buffer]
    wishes = problem.wishes
    return replace(wishes, of={**dict.fromkeys(names, wishes.main), **wishes.of, **(far or {})})


def _describe(one: _Candidate, cycles: int) -> Tiles:
    """Describe the choice for people."""
    copies = one.made.schedule.copies.values()
    weights = sum(copy.source.size for copy in copies if copy.source.constant)
    moved = sum(copy.source.size for copy in copies if not copy.source.constant)
    layers = tuple(_layers(one))
    return Tiles(one.limit, one.rows, one.ahead, len(copies), weights, moved, cycles, layers)


def _layers(one: _Candidate) -> Iterator[LayerTiles]:
    """Describe each layer. A phase's time is that of its cores' layer."""
    own: dict[str, list[tuple[int, Step]]] = {}
    for time, tile in enumerate(one.tiles):
        for step in (*tile.beside, tile.whole):
            own.setdefault(step.layer, []).append((time, step))
    for layer, parts in own.items():
        phase = one.made.schedule.phases[parts[0][0]]
        used = {o.buffer for step in phase.steps if step.layer == layer for o in step.operands if o.buffer}
        bytes_ = sum(b.size for b in one.made.buffers if b.name in used)
        same = len({step.reads[0].offset for _, step in parts if step.reads}) < 2  # tiles of channels read all rows
        axis = "" if len(parts) == 1 else "channels" if same else "rows"
        axis = INPUTS if any(step.is_partial for _, step in parts) else axis
        times = [time for time, step in parts if one.tiles[time].whole is step]
        took = sum(one.ends[time] - (one.ends[time - 1] if time else 0.0) for time in times)
        yield LayerTiles(layer, axis, len(parts), bytes_, round(took))
