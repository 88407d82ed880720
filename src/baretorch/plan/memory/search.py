"""Enumerate packings up to a limit, by branch and bound.

Any packing can be pushed down until every item is at 0 or on another item. Such packings are built from the bottom up:
the next item is never lower than the last, and on top of whatever it must be above. A branch ends when at some half
step the remaining bytes cannot fit below the best packing known, when a remaining item would fit below the next one
(then it could have come first), or when the same items remained at the same floors before. Where items may overlap in
steps, one that is pushed down may be out of step: then only the bound proves anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baretorch.plan.memory.packing import Offsets, Packing

NODES = 60_000  # partial packings times items; counted, not timed, so that the same model gives the same bytes
LARGEST = 200  # items; beyond, the search would not get far


def search_packing(problem: Packing, offsets: Offsets, bound: int) -> tuple[Offsets, bool]:
    """Return the best packing found, at least as good as `offsets`, and whether no packing is better."""
    if problem.height(offsets) <= bound:
        return offsets, True
    if len(problem) > LARGEST:
        return offsets, False
    walk = _Walk(problem, offsets, bound, NODES // len(problem))
    walk.descend(_Partial.empty(problem))
    return walk.best, walk.height <= bound or (walk.nodes > 0 and not walk.steps)


@dataclass(frozen=True, eq=False)
class _Partial:
    """Some items with offsets; `floor` is how low each could be. `top` and `rest` are, per section of time, the height
    reached and the remaining bytes."""

    offsets: Offsets
    floor: Offsets
    top: Offsets
    rest: Offsets
    last: int

    @staticmethod
    def empty(problem: Packing) -> _Partial:
        nothing = np.full(len(problem), -1, np.int64)
        rest = _sections(problem) @ problem.size
        return _Partial(nothing, np.zeros(len(problem), np.int64), np.zeros(len(rest), np.int64), rest, 0)


def _sections(problem: Packing) -> Offsets:
    """Return which items are alive when some item begins, as 0 and 1: [beginnings, items]. Items that are alive
    together at any time are so at one of these times too."""
    times = np.unique(problem.first)[:, None]
    return ((problem.first <= times) & (times <= problem.last)).astype(np.int64)


class _Walk:
    """The search: the best packing so far, and how many partial packings it may still look at."""

    def __init__(self, problem: Packing, best: Offsets, bound: int, nodes: int) -> None:
        self.problem = problem
        self.best = best
        self.height = problem.height(best)
        self.bound = bound
        self.nodes = nodes
        self.seen: dict[tuple[bytes, bytes, int], int] = {}  # the state that decides what may follow -> least height
        self.living = _sections(problem).astype(bool).T
        self.steps = [pair for pair in problem.pairs if pair.near < pair.distance]
        self.meets = (problem.first[:, None] <= problem.last) & (problem.first <= problem.last[:, None])

    def descend(self, partial: _Partial) -> None:
        """Look at all packings that begin with a partial one."""
        self.nodes -= 1
        waiting = np.flatnonzero(partial.offsets < 0)
        beside = partial.offsets[[pair.writes for pair in self.steps]]
        state = (waiting.tobytes(), partial.floor[waiting].tobytes() + beside.tobytes(), partial.last)
        height = int(partial.top.max(initial=0))
        if self.seen.get(state, height + 1) <= height:
            return
        self.seen[state] = height
        if not len(waiting):
            self.best, self.height = partial.offsets, height
            return
        floor = partial.floor[waiting]
        ends = floor + self.problem.size[waiting]
        choices = waiting[(floor >= partial.last) & (floor < ends.min())]
        order = np.lexsort((-self.problem.size[choices], partial.floor[choices]))
        for i in choices[order]:
            if self.nodes <= 0 or self.height <= self.bound:
                return
            after = self.place(partial, int(i))
            if after is not None:
                self.descend(after)

    def lowest(self, partial: _Partial, i: int) -> int:
        """Return the floor of an item, or the next valid place above it, in steps from an item that it may overlap."""
        at = int(partial.floor[i])
        for pair in self.problem.partners.get(i, ()):
            below = int(partial.offsets[pair.writes])
            if i == pair.reads and below >= 0:
                at = below + pair.lift(at - below)
        return at

    def place(self, partial: _Partial, i: int) -> _Partial | None:
        """Place item i at its floor; None if no better packing can follow."""
        size, at = self.problem.size, self.lowest(partial, i)
        end = at + int(size[i])
        offsets, floor, top, rest = (a.copy() for a in (partial.offsets, partial.floor, partial.top, partial.rest))
        offsets[i] = at
        top[self.living[i]] = end
        rest[self.living[i]] -= size[i]
        floor[self.meets[i]] = np.maximum(floor[self.meets[i]], end)
        for pair in self.problem.partners.get(i, ()):
            other, gap = (pair.reads, pair.near) if i == pair.writes else (pair.writes, pair.behind)
            floor[other] = max(floor[other], at + gap)
        waiting = offsets < 0
        reach = np.where(rest > 0, np.maximum(top, at) + rest, top).max()
        highest = (np.maximum(floor, at) + size)[waiting].max(initial=end)
        if max(reach, highest) >= self.height:
            return None
        return _Partial(offsets, floor, top, rest, at)
