"""Cut layers into tiles of rows, because an input or output of theirs is in slower memory.

The rows that a tile reads are copied to a buffer of the scratchpad while the tile before is computed, and its output is
copied back while the next one is. An operand with a `buffer` has both places: `storage` is its home, and `buffer` where
it is while a tile is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from baretorch.ops.helpers.cut import part_of
from baretorch.plan.cluster.team import ClusterTeam
from baretorch.plan.constants import Constants
from baretorch.plan.schedule import BackgroundCopy, Operand, Phase, Step, View
from baretorch.plan.shares import make_part
from baretorch.plan.types import Buffer


@dataclass
class Traffic:
    """The copies of a schedule under construction, by the phase in which they begin and by the one that awaits them,
    and the buffers for their data."""

    begin: dict[int, list[BackgroundCopy]] = field(default_factory=lambda: defaultdict(list))
    await_: dict[int, list[BackgroundCopy]] = field(default_factory=lambda: defaultdict(list))
    buffers: list[Buffer] = field(default_factory=list)

    def add(self, copy: BackgroundCopy, begin: int, end: int, buffer: Buffer) -> None:
        self.begin[begin].append(copy)
        self.await_[end].append(copy)
        self.buffers.append(buffer)

    def __len__(self) -> int:
        return len(self.buffers)

    def with_copies(self, phases: Sequence[Phase], channels: int) -> tuple[Phase, ...] | None:
        """Return the phases with these copies; None if there are too few channels. Copies that are awaited first begin
        first, each on the channel that has been free longest."""
        ends = {copy.name: time for time, copies in self.await_.items() for copy in copies}
        free = list(range(channels))
        taken: dict[str, int] = {}
        done = []
        for time, phase in enumerate(phases):
            awaited = [copy.name for copy in self.await_.get(time, ())]
            free += [taken.pop(name) for name in awaited]
            copies = sorted(self.begin.get(time, ()), key=lambda copy: ends[copy.name])
            if len(copies) > len(free):
                return None
            taken |= {copy.name: free.pop(0) for copy in copies}
            first, *others = phase.steps
            steps = (replace(first, awaits=tuple(awaited)), *others)
            done.append(replace(phase, steps=steps, copies=tuple(replace(c, channel=taken[c.name]) for c in copies)))
        return tuple(done)


ROW_AXIS = 1  # the axis
COUNTS = (3, 4, 6, 8, 12, 16)  # tiles of a layer
PHASE = 150.0  # cycles: the cores meet, and one begins two copies
WORTH = 400.0  # cycles that one more phase must save


def movable_buffers(steps: Sequence[Step], far: Collection[str], kept: Collection[str]) -> frozenset[str]:
    """Return those of the `far` buffers that are only written and read in tiles of rows, or as channels of a single
    pixel. Buffers that are `kept` after the run do not move, nor does the first step's input, which no phase
    precedes."""
    first = {o.storage for o in steps[0].reads}
    whole = {o.storage for step in steps if not has_rows(step) for o in (step.writes if _is_part(step) else step.uses)}
    return frozenset(far) - first - whole - frozenset(kept)


def _is_part(step: Step) -> bool:
    """Return whether a step adds up input channels of a single pixel, which are contiguous: it is a tile by itself."""
    return step.is_partial and step.call.x.count == step.call.x.shape[-1]


def has_rows(step: Step) -> bool:
    """Return whether a step can be cut into tiles of rows."""
    call = step.call
    if step.guards or len(call.outputs) != 1 or len(call.y.shape) != 4 or call.y.shape[ROW_AXIS] < COUNTS[0]:
        return False
    return any(split.axis == ROW_AXIS and split.step == 1 for split in step.kernel.splits(call))


@dataclass(frozen=True)
class InRows:
    """A layer in tiles of rows, the bytes of the largest tile's buffers, and an estimate of the cores' cycles."""

    tiles: list[Step]
    bytes: int
    cycles: float

    @property
    def reads(self) -> bool:
        """Report whether tiles read rows from slower memory, and do not only write them there."""
        return any(o.buffer for o in self.tiles[0].reads)


def find_row_tiles(step: Step, far: Collection[str], storage: Mapping[str, View], team: ClusterTeam) -> list[InRows]:
    """List the ways to cut a layer that uses `far` buffers, the quickest first."""
    if _is_part(step):
        x, *others = step.operands
        tile = replace(step, operands=(replace(x, buffer=f"{x.storage} of {step.call.y.name}"), *others))
        return [InRows([tile], x.size, PHASE + team.longest(tile))]
    found, height = [], step.call.y.shape[ROW_AXIS]
    for count in COUNTS:
        places = [height * i // count for i in range(1, count)]
        tiles = cut_rows(step, places, storage, team, far) if count <= height else None
        if tiles is not None:
            most = max(sum(o.size for o in tile.uses if o.buffer) for tile in tiles)
            found.append(InRows(tiles, most, sum(PHASE + team.longest(tile) for tile in tiles)))
    return sorted(found, key=lambda way: way.cycles)


def cut_evenly(step: Step, storage: Mapping[str, View], team: ClusterTeam) -> list[Step]:
    """Cut a step into rows that all cores share evenly and the remaining rows, whose channels they may share, if that
    is quicker."""
    if team.count == 1 or not has_rows(step):
        return [step]
    whole, most, found = team.longest(step), step.call.y.shape[ROW_AXIS], [step]
    for rows in dict.fromkeys(most - most % n for n in (team.count, 4, 2) if 0 < most % n < most):
        tiles = cut_rows(step, [rows], storage, team)
        if tiles is not None and sum(team.longest(tile) for tile in tiles) + WORTH < whole:
            whole, found = sum(team.longest(tile) for tile in tiles), tiles
    return found


def cut_rows(
    step: Step, places: Sequence[int], storage: Mapping[str, View], team: ClusterTeam, far: Collection[str] = ()
) -> list[Step] | None:
    """Cut a step into tiles at these rows, with buffers for operands that are `far`; None if that is impossible."""
    ends = pairwise((0, *places, step.call.y.shape[ROW_AXIS]))
    parts = [part_of(step.call, ROW_AXIS, start, stop) for start, stop in ends]
    tiles = []
    for number, part in enumerate(parts):
        if part is None:
            return None
        made = make_part(step, part, str(part.at), storage, Constants(packs=team.memo.packs))
        at = step.writes[0].offset  # of a step that may be a tile itself
        own = f"of {step.call.y.name} {f'{at}.' if at else ''}{number}"
        tiles.append(replace(made, operands=tuple(_near(made.operands, far, own))))
    return tiles


def _near(operands: Sequence[Operand], far: Collection[str], own: str) -> Iterator[Operand]:
    """Give each operand in slower memory a buffer. Two operands in the same memory, such as an input and an output in
    place, get one each; an operand that is read twice is copied once."""
    buffers: dict[str, list[tuple[Operand, bool]]] = {}
    for i, o in enumerate(operands):
        if o.constant or o.storage not in far:
            yield o
            continue
        what, others = (o, i == len(operands) - 1), buffers.setdefault(o.storage, [])
        if what not in others:
            others.append(what)
        number = others.index(what)
        yield replace(o, buffer=f"{o.storage} {f'({number + 1}) ' if number else ''}{own}")


def carry(tiles: Sequence[Sequence[Step]], traffic: Traffic) -> bool:
    """Add the copies for the tiles of consecutive phases. Return False if that is impossible, because data would have
    to be copied before it is home."""
    home: dict[str, list[tuple[Operand, int]]] = {}  # written parts of each buffer, and when they are home
    for time, step in ((time, step) for time, phase in enumerate(tiles) for step in phase):
        for o in dict.fromkeys(step.reads):
            since = max((t for part, t in home.get(o.storage, ()) if _meet(part, o)), default=0)
            begin = max(since, time - 1) if o.buffer else since
            if begin > time or (o.buffer and begin == time):
                return False
            if o.buffer:
                copy = BackgroundCopy(o.buffer, replace(o, buffer=""), o)
                traffic.add(copy, begin, time, _buffer(o, begin, time))
        for o in step.writes:
            home.setdefault(o.storage, []).append((o, time + (2 if o.buffer else 1)))
            if o.buffer:
                if time + 2 >= len(tiles):
                    return False
                copy = BackgroundCopy(o.buffer, o, replace(o, buffer=""))
                traffic.add(copy, time + 1, time + 2, _buffer(o, time, time + 1))
    return True


def _meet(a: Operand, b: Operand) -> bool:
    return a.offset < b.end and b.offset < a.end


def _buffer(o: Operand, first: int, last: int) -> Buffer:
    return Buffer(o.buffer, -(-o.size // 4) * 4, first, last, base=o.offset)
