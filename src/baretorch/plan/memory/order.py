"""Order the steps so that they need the least memory.

Steps may change places if neither writes bytes that the other uses. A step that all others must precede or follow cuts
the run into stretches, which are ordered one by one. A stretch that does not determine the peak keeps its order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from baretorch.plan.memory.lifetimes import possible_overlaps
from baretorch.plan.memory.packing import round_up
from baretorch.plan.schedule import Step
from baretorch.plan.types import Buffer

STATES = 20_000  # sets of finished steps that the search of a stretch looks at before it falls back to greedy
SEARCHED, LONGEST = 100, 1000  # most steps of a stretch that is searched, and of one that is ordered at all


def least_memory_order(steps: Sequence[Step], buffers: Sequence[Buffer]) -> list[Step]:
    """Return the steps in the order with the lowest peak of live bytes that the search finds."""
    before = dependencies(steps)
    parts = list(_parts(before))
    if all(len(part) == 1 for part in parts):
        return list(steps)
    across = _Across(buffers)
    stretches = [_Stretch.make(steps, across, before, part) for part in parts]
    chosen = {id(s): s.given for s in stretches}
    reached = 0  # no order of the stretches seen so far needs less
    for stretch in sorted(stretches, key=lambda s: -s.peak(s.given)):
        if stretch.peak(stretch.given) <= reached:
            break
        better = min(stretch.given, stretch.least(), key=stretch.peak)
        chosen[id(stretch)] = better
        reached = max(reached, stretch.peak(better))
    return [steps[stretch.steps[i]] for stretch in stretches for i in chosen[id(stretch)]]


def dependencies(steps: Sequence[Step]) -> list[int]:
    """Return for each step the set of those that must precede it, as the bits of a number."""
    reads: dict[str, list[tuple[int, int, int]]] = {}
    writes: dict[str, list[tuple[int, int, int]]] = {}
    before: list[int] = []
    for i, step in enumerate(steps):
        earlier = 0
        used = step.uses
        made = 0 if step.call.op.in_order else len(used) - len(step.call.outputs)
        for n, o in enumerate(used):
            start, stop = o.offset, o.end
            tables = (writes,) if n < made else (writes, reads)
            for a, b, j in (row for table in tables for row in table.get(o.storage, ())):
                if a < stop and start < b and j != i:
                    earlier |= 1 << j | before[j]
            (reads if n < made else writes).setdefault(o.storage, []).append((start, stop, i))
        before.append(earlier)
    return before


def _parts(before: Sequence[int]) -> Iterator[range]:
    """Cut the steps before and after each that has a fixed place."""
    count = len(before)
    behind = (1 << count) - 1  # steps that all later ones wait for
    fixed = [False] * count
    for i in reversed(range(count)):
        fixed[i] = before[i] == (1 << i) - 1 and bool(behind >> i & 1)
        behind &= before[i]
    start = 0
    for i in range(count):
        if fixed[i]:
            yield from (range(start, i), range(i, i + 1)) if start < i else (range(i, i + 1),)
            start = i + 1
    if start < count:
        yield range(start, count)


@dataclass(frozen=True, eq=False)
class _Use:
    """A buffer, as a stretch sees it: the bits of the steps that use it, and whether it is alive before and after."""

    size: int
    users: int
    before: bool
    after: bool

    def alive(self, done: int) -> bool:
        return (self.before or bool(done & self.users)) and (self.after or bool(self.users & ~done))


class _Across:
    """The buffers by name, and the bytes of those that are alive through some steps that do not use them."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffer = {b.name: b for b in buffers}
        self.born = _sums((b.first, b) for b in buffers)
        self.dead = _sums((b.last, b) for b in buffers)

    def bytes(self, part: range, inside: int) -> int:
        """Return the bytes of the buffers that are alive before and after the part; `inside` are those of buffers that
        are alive only in it."""
        return _before(self.born, part.start) - _before(self.dead, part.stop) + inside


def _sums(events: Iterable[tuple[int, Buffer]]) -> tuple[list[int], list[int]]:
    """Return times in order, and the bytes of all buffers up to each."""
    rows = sorted((time, round_up(b.size)) for time, b in events)
    return [time for time, _ in rows], [0, *accumulate(size for _, size in rows)]


def _before(sums: tuple[list[int], list[int]], time: int) -> int:
    times, totals = sums
    return totals[bisect_left(times, time)]


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Some steps, numbered from 0 in the given order. Other buffers always take `rest` bytes; `uses` are the buffers of
    each step, `scratch` its scratch, and `reaches` the buffers that its output may overlap."""

    steps: range
    rest: int
    before: tuple[int, ...]
    uses: tuple[tuple[_Use, ...], ...]
    scratch: tuple[int, ...]
    reaches: tuple[tuple[tuple[_Use, _Use, int], ...], ...]

    @staticmethod
    def make(steps: Sequence[Step], across: _Across, before: Sequence[int], part: range) -> _Stretch:
        names = [{o.storage for o in steps[i].uses if o.storage in across.buffer} for i in part]
        users: dict[str, int] = {}
        for n, some in enumerate(names):
            for name in some:
                users[name] = users.get(name, 0) | 1 << n
        uses: dict[str, _Use] = {}
        for name, bits in users.items():
            b = across.buffer[name]
            uses[name] = _Use(round_up(b.size), bits, b.first < part.start, b.last >= part.stop)
        scratch = tuple(round_up(s.scratch.size) if (s := steps[i]).scratch else 0 for i in part)
        inside = sum(scratch) + sum(u.size for u in uses.values() if not u.before and not u.after)
        used = sum(u.size for u in uses.values() if u.before and u.after)
        mask = (1 << len(part)) - 1
        return _Stretch(
            part,
            across.bytes(part, inside) - used,
            tuple(before[i] >> part.start & mask for i in part),
            tuple(tuple(uses[name] for name in sorted(some)) for some in names),
            scratch,
            tuple(tuple(_meetings(uses, steps[i])) for i in part),
        )

    @property
    def given(self) -> list[int]:
        return list(range(len(self.steps)))

    def start(self) -> int:
        """Return the live bytes before the first step."""
        return self.rest + sum(u.size for u in {u for some in self.uses for u in some} if u.before)

    def take(self, live: int, done: int, step: int) -> tuple[int, int]:
        """Return the bytes alive during a step, and those after it."""
        then = done | 1 << step
        new = sum(u.size for u in self.uses[step] if not u.alive(done))
        dead = sum(u.size for u in self.uses[step] if not u.alive(then))
        shared = spread = 0
        for reads, writes, most in self.reaches[step]:
            if not reads.alive(then) and not writes.alive(done):
                shared += most
                spread = writes.size
        return live + new + self.scratch[step] - min(shared, spread), live + new - dead

    def peak(self, order: Sequence[int]) -> int:
        live, done, peak = self.start(), 0, 0
        for step in order:
            during, live = self.take(live, done, step)
            peak, done = max(peak, during), done | 1 << step
        return peak

    def ready(self, done: int) -> list[int]:
        return [i for i, first in enumerate(self.before) if not done >> i & 1 and not first & ~done]

    def least(self) -> list[int]:
        """Return an order with the lowest peak; if the search takes too long, one that takes the cheapest step each
        time."""
        if len(self.steps) > SEARCHED:
            return self.greedy() if len(self.steps) <= LONGEST else self.given
        everything = (1 << len(self.steps)) - 1
        came: dict[int, tuple[int, int]] = {0: (0, -1)}  # set of finished steps -> the set before, the step
        best = {0: 0}
        queue = [(0, 0, 0, self.start())]
        while queue and len(best) < STATES:
            peak, _, done, live = heapq.heappop(queue)
            if peak > best[done]:
                continue
            if done == everything:
                return _path(came, done)
            for step in self.ready(done):
                during, after = self.take(live, done, step)
                then, most = done | 1 << step, max(peak, during)
                if most < best.get(then, most + 1):
                    best[then], came[then] = most, (done, step)
                    heapq.heappush(queue, (most, -then.bit_count(), then, after))
                if most == peak and after <= live:
                    break  # this step costs nothing, so no other needs to come first
        return self.greedy()

    def greedy(self) -> list[int]:
        order: list[int] = []
        live, done = self.start(), 0
        while len(order) < len(self.steps):
            costs = [(*self.take(live, done, step), step) for step in self.ready(done)]
            _, live, step = min(costs, key=lambda c: (c[1], c[0], c[2]))
            order.append(step)
            done |= 1 << step
        return order


def _meetings(uses: Mapping[str, _Use], step: Step) -> Iterator[tuple[_Use, _Use, int]]:
    """Yield pairs of buffers that a step's output may overlap, and how many bytes they may share."""
    for r in possible_overlaps(step):
        if r.reads in uses and r.writes in uses:
            reads, writes = uses[r.reads], uses[r.writes]
            yield reads, writes, r.most(reads.size, writes.size)


def _path(came: Mapping[int, tuple[int, int]], done: int) -> list[int]:
    order = []
    while done:
        done, step = came[done]
        order.append(step)
    return order[::-1]
