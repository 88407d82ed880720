"""State the problem of giving buffers offsets in numbers.

Time is in half steps: a step reads in its first half and writes in its second. Two items that are alive in the same
half must not share a byte. An input that dies where an output is born, and that the kernel allows to overlap it, is
alive in the first half only, the output from the second on; the remaining rule for the two is a `Separation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from baretorch.plan.types import Buffer, Overlap

Offsets = npt.NDArray[np.int64]


ALIGNMENT = 4


def round_up(size: int, to: int = ALIGNMENT) -> int:
    return -(-size // to) * to


def grain(buffers: Iterable[Buffer]) -> int:
    """Return an alignment that suits all of these buffers."""
    return max((b.align for b in buffers), default=ALIGNMENT)


class Separation(NamedTuple):
    """The valid positions of two items. Either `reads` begins at least `distance` bytes after `writes`, or `writes`
    at least `behind` bytes after `reads`. If they may not share a byte, these are their sizes. There may be valid
    places nearer than `distance`: every `step` bytes from `near` on; if there are none, `near` equals `distance`."""

    reads: int
    writes: int
    distance: int
    behind: int
    near: int
    step: int

    @property
    def between(self) -> list[tuple[int, int]]:
        """The intervals, relative to `writes`, in which `reads` may not begin."""
        places = [*range(self.near, self.distance, self.step), self.distance]
        return list(zip([-self.behind, *places], places, strict=False))

    def lift(self, ahead: int) -> int:
        """Return the next valid distance of `reads` from `writes`, from `ahead` on."""
        if ahead >= self.distance:
            return ahead
        steps = max(0, -((self.near - ahead) // self.step))
        return min(self.near + steps * self.step, self.distance)


@dataclass(frozen=True, eq=False)
class Packing:
    """Items by number, with their sizes and the half steps through which they live."""

    size: Offsets
    first: Offsets
    last: Offsets
    pairs: tuple[Separation, ...] = ()

    def __len__(self) -> int:
        return len(self.size)

    @cached_property
    def partners(self) -> dict[int, list[Separation]]:
        """The pairs that each item is in."""
        table: dict[int, list[Separation]] = {}
        for pair in self.pairs:
            table.setdefault(pair.reads, []).append(pair)
            table.setdefault(pair.writes, []).append(pair)
        return table

    def near(self, i: int) -> list[int]:
        """Return the items that are alive together with item i."""
        if i not in self._near:
            self._near[i] = self.neighbours(i).tolist()
        return self._near[i]

    def neighbours(self, i: int) -> Offsets:
        """Return the items that are alive together with item i, as an array."""
        if i not in self._neighbours:
            together = (self.first <= self.last[i]) & (self.last >= self.first[i])
            together[i] = False
            self._neighbours[i] = np.flatnonzero(together)
        return self._neighbours[i]

    @cached_property
    def _near(self) -> dict[int, list[int]]:
        return {}

    @cached_property
    def _neighbours(self) -> dict[int, Offsets]:
        return {}

    def part(self, items: Offsets) -> Packing:
        """Return the problem of these items alone."""
        number = {int(old): new for new, old in enumerate(items)}
        pairs = (p for p in self.pairs if p.reads in number and p.writes in number)
        renumbered = tuple(p._replace(reads=number[p.reads], writes=number[p.writes]) for p in pairs)
        return Packing(self.size[items], self.first[items], self.last[items], renumbered)

    def _shared(self, pair: Separation) -> int:
        """Return the most bytes that both items may share."""
        reads, writes = int(self.size[pair.reads]), int(self.size[pair.writes])
        return max(min(reads, writes - pair.near), min(writes, reads - pair.behind))

    def height(self, offsets: Offsets) -> int:
        return int((offsets + self.size).max(initial=0))

    def load(self) -> tuple[Offsets, Offsets]:
        """Return the half steps at which items begin or end, and the bytes that are alive from each to the next."""
        times, where = np.unique(np.concatenate([self.first, self.last + 1]), return_inverse=True)
        change = np.zeros(len(times), np.int64)
        np.add.at(change, where, np.concatenate([self.size, -self.size]))
        return times, np.cumsum(change)

    def bound(self) -> int:
        """Return a lower bound of the arena: the most bytes alive while a step reads, or while it writes; or in
        the whole step with overlaps, where a pair counts as its union."""
        if not len(self):
            return 0
        times, load = self.load()
        peak = int(load.max())
        steps: dict[int, list[Separation]] = {}
        for pair in self.pairs:
            steps.setdefault(int(self.last[pair.reads]), []).append(pair)
        for half, pairs in steps.items():
            reads, writes = {p.reads for p in pairs}, {p.writes for p in pairs}
            live = load[np.searchsorted(times, half, side="right") - 1] + sum(self.size[w] for w in writes)
            shared = sum(self._shared(p) for p in pairs)
            most = min(sum(self.size[r] for r in reads), sum(self.size[w] for w in writes))
            peak = max(peak, int(live - min(shared, most)))
        return peak


def make_packing(buffers: Sequence[Buffer], overlaps: Sequence[Overlap] = ()) -> Packing:
    """State the problem of these buffers; item i is buffer i."""
    number = {b.name: i for i, b in enumerate(buffers)}
    to = grain(buffers)
    read, written = {o.reads for o in overlaps}, {o.writes for o in overlaps}

    def least(distance: int | None, size: int) -> int:
        return round_up(size if distance is None else min(distance, size), to)

    def pair(o: Overlap) -> Separation:
        reads, writes = number[o.reads], number[o.writes]
        distance = least(o.distance, buffers[writes].size)
        step = lcm(o.nearer.step, to) if o.nearer else to
        near = round_up(o.nearer.distance, step) if o.nearer else distance
        return Separation(reads, writes, distance, least(o.behind, buffers[reads].size), min(near, distance), step)

    return Packing(
        _ints(round_up(b.size, to) for b in buffers),
        _ints(2 * b.first + (b.name in written) for b in buffers),
        _ints(2 * b.last + (b.name not in read) for b in buffers),
        tuple(map(pair, overlaps)),
    )


def _ints(values: Any) -> Offsets:
    return np.fromiter(values, np.int64)
