"""Let units of a cluster compute while its cores compute other layers, where neither needs the other's result.

A phase may have a step of a unit and one of the cores. Branches of a graph give such pairs. Where one layer follows the
other, both are cut into tiles of rows first: the cores compute rows from the unit's previous tile while the unit
computes the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from baretorch.plan.cluster.cost import estimate_cycles
from baretorch.plan.cluster.row_tiles import PHASE, ROW_AXIS, cut_rows, has_rows
from baretorch.plan.cluster.team import ClusterTeam
from baretorch.plan.memory.order import dependencies
from baretorch.plan.schedule import Step, View

WINDOW = 64  # steps among which a partner is searched
COUNTS = (2, 3, 4, 6, 8)  # tiles of a layer
WEIGHTS = 12288  # largest weights of a unit's layer that is cut into rows: each tile reads all of them
MULTIPLES = (1, 2, 4, 8)  # of rows in a tile


def group_phases(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """Return the numbers of the steps in the order of their phases: one step of a unit, one of the cores, or both. The
    first step that remains begins the next phase."""
    if any(step.guards for step in steps):
        return [(i,) for i in range(len(steps))]
    before, left, done = dependencies(steps), list(range(len(steps))), 0
    found = []
    while left:
        first, others = left[0], left[1:WINDOW]
        own = [i for i in others if _may_pair(steps[first], steps[i]) and not before[i] & ~done][:1]
        group = (*own, first) if own and steps[own[0]].kernel.unit else (first, *own)
        for i in group:
            left.remove(i)
            done |= 1 << i
        found.append(group)
    return found


def _may_pair(a: Step, b: Step) -> bool:
    """Return whether one step is of a unit that can run alone, and neither is already in tiles of rows."""
    unit = a.kernel if a.kernel.unit else b.kernel
    return (
        bool(a.kernel.unit) != bool(b.kernel.unit)
        and bool(unit.begins)
        and not any(o.buffer for o in (*a.uses, *b.uses))
    )


def without_waiting(step: Step) -> Step:
    """Return a unit's step that core 0 starts without waiting for it."""
    kernel = step.kernel
    return replace(step, kernel=replace(kernel, symbol=kernel.begins, channels=kernel.begins)) if kernel.unit else step


def pipeline_rows(
    steps: Sequence[Step], storage: Mapping[str, View], kept: Collection[str], team: ClusterTeam
) -> list[Step]:
    """Cut layers of cores next to a unit's layer into tiles of rows, and the unit's too, where that takes less time.
    Buffers that are `kept` are read after the run."""
    steps = _in_place(_short_first(steps), kept)
    near = _neighbours(steps)
    tiles = {
        i: best for i, step in enumerate(steps) if near[i] and (best := _tiles(step, steps, near[i], storage, team))
    }
    for i in [i for i, step in enumerate(steps) if step.kernel.unit]:
        count = max((len(tiles[j]) for j in near[i] if j in tiles), default=1)
        if count > 1 and _may_cut(steps[i]):
            height = steps[i].call.y.shape[ROW_AXIS]
            cut = cut_rows(steps[i], _places(height, min(count, height), 1), storage, team)
            tiles |= {} if cut is None else {i: cut}
    return [part for i, step in enumerate(steps) for part in tiles.get(i, [step])]


def _short_first(steps: Sequence[Step]) -> list[Step]:
    """Order consecutive independent steps of a unit so that short ones come first: cores that need all of them can
    start with the first tiles of the last."""
    before, order = dependencies(steps), list[int]()
    for i, step in enumerate(steps):
        at = len(order)
        while step.kernel.unit and at and not before[i] >> order[at - 1] & 1:
            other = steps[order[at - 1]]
            if not other.kernel.unit or _cycles(other) <= _cycles(step):
                break
            at -= 1
        order.insert(at, i)
    return [steps[i] for i in order]


def _cycles(step: Step) -> float:
    return estimate_cycles(step.call, step.kernel)


def _in_place(steps: Sequence[Step], kept: Collection[str]) -> list[Step]:
    """Let outputs reuse the memory of inputs that are not read again, where a kernel computes each number from the one
    at the same place. In tiles, both would be alive at once."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    ends: dict[str, int] = {}  # another step may write beyond it
    for i, step in enumerate(steps):
        for o in step.uses:
            first.setdefault(o.storage, i)
            last[o.storage] = i
            ends[o.storage] = max(o.end, ends.get(o.storage, 0))
    made = {o.storage for step in steps for o in step.writes} - set(kept)
    moved: dict[str, str] = {}
    found = []
    for i, step in enumerate(steps):
        if not step.kernel.unit and len(step.writes) == 1 and has_rows(step):
            (y,) = step.writes
            for x, distance in zip(step.reads, step.kernel.overlap(step.call), strict=True):
                whole = x.offset == y.offset == 0 and x.size == y.size == ends[y.storage] and distance == 0
                if whole and last[x.storage] == i == first[y.storage] and {x.storage, y.storage} <= made:
                    moved.setdefault(y.storage, moved.get(x.storage, x.storage))
        operands = tuple(replace(o, storage=moved.get(o.storage, o.storage)) for o in step.operands)
        found.append(replace(step, operands=operands))
    return found


def _may_cut(step: Step) -> bool:
    """Return whether a unit's step can be cut into rows while all its weights stay in memory."""
    return has_rows(step) and sum(o.size for o in step.operands if o.constant) <= WEIGHTS


def _neighbours(steps: Sequence[Step]) -> list[list[int]]:
    """Return for each step those of the other kind that write what it reads, or read what it writes."""
    makers: dict[str, int] = {}
    found: list[list[int]] = [[] for _ in steps]
    for i, step in enumerate(steps):
        for o in step.reads:
            j = makers.get(o.storage)
            if j is not None and bool(steps[j].kernel.unit) != bool(step.kernel.unit):
                found[i].append(j)
                found[j].append(i)
        makers |= {o.storage: i for o in step.writes}
    return found


def _tiles(
    step: Step, steps: Sequence[Step], near: Sequence[int], storage: Mapping[str, View], team: ClusterTeam
) -> list[Step] | None:
    """Return the tiles of a layer of cores that take the least time, including the time of its neighbours that does not
    overlap: the first tile of the layer before, and the last of the one after."""
    if step.kernel.unit or not has_rows(step):
        return None
    units = max((_cycles(steps[j]) for j in near if _may_cut(steps[j])), default=0.0)
    height, best, least = step.call.y.shape[ROW_AXIS], None, team.longest(step) + units
    for places in _ways(height, COUNTS):
        tiles = cut_rows(step, places, storage, team)
        if tiles is not None:
            took = sum(PHASE + team.longest(tile) for tile in tiles) + units / len(tiles)
            best, least = (tiles, took) if took < least else (best, least)
    return best


def _ways(height: int, counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ways = (_places(height, count, unit) for unit in MULTIPLES for count in counts if count <= height)
    return iter(dict.fromkeys(way for way in ways if way))


def _places(height: int, count: int, unit: int) -> tuple[int, ...]:
    """Return where to cut a height into about `count` tiles, at multiples of `unit` rows."""
    units = -(-height // unit)
    return tuple(sorted({unit * (units * i // count) for i in range(1, count)} - {0}))
