"""Inputs that the calibration did not see may be larger than its scales hold. How much is lost then, the samples show
themselves: each half of them is cut off where the ranges of the other end, and what that changes is noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from baretorch.ir.graph import Array, Graph
from baretorch.quantize.groups import Group
from baretorch.quantize.observers import Meant

SPLITS = 4  # of the samples in two halves
SHARE = 0.5  # of what half of the samples lose, all of them do: half as many other values lie beyond their range


@dataclass
class Ranges:
    """The least and the largest value of each group of tensors, sample by sample."""

    groups: Sequence[Group]
    found: list[Array] = field(default_factory=list)

    def see(self, values: Mapping[str, Array]) -> None:
        """Add a sample by the values of its tensors."""
        self.found.append(np.array([_range(g, values) for g in self.groups], np.float32).reshape(-1, 2))

    def of_others(self, splits: int) -> Iterator[tuple[int, Array]]:
        """For each sample, several times, the ranges of half of the samples, without itself, which begin and end at 0
        at least."""
        rng, count = np.random.default_rng(0), len(self.found)
        least, most = (np.stack(self.found)[:, :, side] for side in (0, 1))
        for _ in range(splits):
            first = np.isin(np.arange(count), rng.permutation(count)[: count // 2])
            halves = {
                half: np.stack([least[part].min(axis=0, initial=0.0), most[part].max(axis=0, initial=0.0)], axis=1)
                for half, part in ((True, first), (False, ~first))
            }
            for i in range(count):
                yield i, halves[not first[i]]


def _range(group: Group, values: Mapping[str, Array]) -> tuple[float, float]:
    parts = [values[name] for name in group.seen if values[name].size]
    lo, hi = min((float(x.min()) for x in parts), default=0.0), max((float(x.max()) for x in parts), default=0.0)
    known = [data for data in group.constants.values() if data.size]
    return min(lo, *(float(d.min()) for d in known), inf), max(hi, *(float(d.max()) for d in known), -inf)


def can_be_cut(group: Group) -> bool:
    """Whether a group's range comes from all values of its tensors. Scores are cut off on purpose."""
    return group.fixed is None and bool(group.seen) and all(type(m) is Meant for m in group.seen.values())


def splits_of(graph: Graph) -> int:
    """How often the samples are split. State goes on from sample to sample, so they are shown once."""
    return 1 if graph.state else SPLITS
