"""Inputs that the calibration did not see may be larger than its scales hold. How much is lost then, the samples show
themselves: each half of them is cut off where the ranges of the other end, and what that changes is noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Tensor, fresh
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.move import Slice
from baretorch.quantize.groups import Group
from baretorch.quantize.observers import Meant
from baretorch.quantize.simulate import with_changes
from baretorch.quantize.watch import Runner, watching

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
                yield i, halves[not first[i]].reshape(-1)


def _range(group: Group, values: Mapping[str, Array]) -> tuple[float, float]:
    parts = [values[name] for name in group.seen if values[name].size]
    lo, hi = min((float(x.min()) for x in parts), default=0.0), max((float(x.max()) for x in parts), default=0.0)
    known = [data for data in group.constants if data.size]
    return min(lo, *(float(d.min()) for d in known), inf), max(hi, *(float(d.max()) for d in known), -inf)


def watched_groups(groups: Sequence[Group], int8: set[str]) -> list[Group]:
    """The groups whose range comes from all values of their tensors. Scores are cut off on purpose."""
    return [
        g
        for g in groups
        if g.fixed is None and g.seen and all(n in int8 and type(m) is Meant for n, m in g.seen.items())
    ]


def splits_of(graph: Graph) -> int:
    """How often the samples are split. State goes on from sample to sample, so they are shown once."""
    return 1 if graph.state else SPLITS


def cut_outputs(
    graph: Graph, ranges: Ranges, calls: Sequence[Sequence[Array]], runner: Runner
) -> Iterator[tuple[int, Mapping[str, Array]]]:
    """Yield the outputs, by name, of samples that are cut off where others end."""
    cut, names = _cut(graph, ranges.groups)
    with watching(cut, list(names.values()), runner) as run:
        for i, bounds in ranges.of_others(splits_of(graph)):
            has = run((*calls[i], bounds))
            yield i, {name: has[other] for name, other in names.items()}


def _cut(graph: Graph, groups: Sequence[Group]) -> tuple[Graph, dict[str, str]]:
    """The graph that takes a range for each group as its last input and cuts values off there; and its outputs."""
    bounds = Tensor(fresh(graph, (), "bounds"), (2 * len(groups),), DType.FLOAT32)
    orders = (*graph.input_orders, (0,)) if graph.input_orders else ()
    tensors = {**graph.tensors, bounds.name: bounds}
    wider = replace(graph, tensors=tensors, inputs=(*graph.inputs, bounds.name), input_orders=orders)
    number = {name: i for i, group in enumerate(groups) for name in group.seen}

    def cut(t: Tensor, more: dict[str, Tensor]) -> tuple[list[Node], str] | None:
        if t.name not in number:
            return None
        nodes, x = [], t.name
        for op, at in ((Maximum(), 2 * number[t.name]), (Minimum(), 2 * number[t.name] + 1)):
            bound, y = (fresh(wider, more, f"{t.name}_{word}_{at % 2}") for word in ("bound", "cut"))
            more[bound] = replace(bounds, name=bound, shape=(1,))
            more[y] = replace(t, name=y)
            nodes += [Node(Slice(0, at, at + 1), (bounds.name,), (bound,)), Node(op, (x, bound), (y,))]
            x = y
        return nodes, x

    made = with_changes(wider, cut)
    return made.graph, dict(zip(graph.outputs, made.graph.outputs, strict=True))
