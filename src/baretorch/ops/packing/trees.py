"""Trees in units of 16 bits, for `trees/compact.c`: first the lists of votes, then the nodes.

A comparison is a feature, the distance to what follows if the feature is above the threshold, and the upper 16 bits of
the threshold's key. Equal subtrees within reach of the distance are stored once; most leaves are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from baretorch.ir.graph import Array

LEAF = 0x8000
DEEPEST = 64
MOST = 1 << 16  # units


class DoesNotFit(Exception):
    """Raised if trees do not fit into this form."""


@dataclass(frozen=True, eq=False)
class CompactTrees:
    """The tables of `trees/compact.c`, and the bits of their fields."""

    nodes: Array
    roots: Array
    votes: Array
    shift: int
    vote_bits: int


@dataclass
class _Packer:
    """Writes units from the last to the first, so that a node knows what comes after it. A position counts units from
    the end."""

    table: Array
    lists: Sequence[int]  # where the list of each leaf begins
    shift: int
    units: list[int] = field(default_factory=list)
    found: dict[int, int] = field(default_factory=dict)  # the latest position of each subtree
    ids: dict[tuple[int, ...], int] = field(default_factory=dict)
    known: dict[int, tuple[int, int]] = field(default_factory=dict)  # the id and the units of each node's subtree

    def identify(self, at: int, depth: int = 0) -> tuple[int, int]:
        """Return the number of a subtree, which equal ones share, and its units if nothing is shared."""
        if at < 0:
            return self.ids.setdefault((self.lists[~at],), len(self.ids)), 1
        if at not in self.known:
            if depth > DEEPEST:
                raise DoesNotFit
            feature, key, below, above = (int(v) for v in self.table[at])
            (one, size), (other, more) = (self.identify(child, depth + 1) for child in (below, above))
            number = self.ids.setdefault((feature, key, one, other), len(self.ids))
            self.known[at] = number, min(size + more + 2, MOST)
        return self.known[at]

    def write(self, at: int) -> None:
        """Add a subtree before all units so far."""
        number, _ = self.identify(at)
        if at < 0:
            self.units.append(LEAF + self.lists[~at])
        else:
            feature, key, below, above = (int(v) for v in self.table[at])
            other, reach = self.identify(above)[0], 1 << self.shift
            if len(self.units) + self.identify(below)[1] - self.found.get(other, -MOST) >= reach:
                self.write(above)
            self.write(below)
            distance = len(self.units) - self.found[other]
            if distance >= reach or len(self.units) > MOST:
                raise DoesNotFit
            self.units += [(key >> 16) & 0xFFFF, (feature >> 1 << self.shift) + distance]
        self.found[number] = len(self.units)


def pack_trees(features: int, nodes: Array, roots: Array, starts: Array, places: Array, votes: Array) -> CompactTrees:
    """Return the trees in units. Raises DoesNotFit."""
    bits = max(1, (features - 1).bit_length())
    if bits > 10 or (nodes[:, 0] & 1).any() or (nodes[:, 1] & 0xFFFF).any():
        raise DoesNotFit
    values, numbers = np.unique(votes.view(np.int32), return_inverse=True)  # by bits: both zeros, NaN
    if values.size == 0:
        values = np.zeros(1, np.int32)
    zero = int(np.flatnonzero(values == 0)[0]) if (values == 0).any() else values.size
    if zero == values.size and (np.diff(starts) == 0).any():  # leaves without votes add 0 to the first target
        values = np.append(values, np.int32(0))
    vote_bits = max(1, (values.size - 1).bit_length())
    if int(places.max(initial=0)) + 1 << vote_bits > LEAF:
        raise DoesNotFit
    lists: list[int] = []
    begins: list[int] = []
    for first, last in pairwise(starts):
        begins.append(len(lists))
        lists += [(int(places[v]) << vote_bits) + int(numbers[v]) for v in range(first, last)] or [zero]
        lists[-1] += LEAF
    if len(lists) > LEAF:
        raise DoesNotFit
    packer = _Packer(nodes, begins, 15 - bits)
    ends = []
    for root in reversed(roots):
        packer.write(int(root))
        ends.append(len(packer.units))
    if len(lists) + len(packer.units) > MOST:
        raise DoesNotFit
    total = len(lists) + len(packer.units)
    heads = [total - end for end in reversed(ends)]
    return CompactTrees(
        np.array(lists + packer.units[::-1], np.uint16).view(np.int16),
        np.array(heads, np.uint16).view(np.int16),
        values.astype(np.int32).view(np.float32),
        packer.shift,
        vote_bits,
    )
