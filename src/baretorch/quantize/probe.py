"""Probe a float graph: one program returns the values of every tensor that gets a scale, and cuts values off at given
bounds, as a scale that is too small would.

Inputs that calibration did not see may be larger than its scales can represent. The samples show how much is lost then:
the values of each half are cut off at the ranges of the other half, and the change of the outputs is noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Tensor, fresh
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.quantize.groups import Group, Groups
from baretorch.quantize.observers import Values
from baretorch.quantize.simulate import with_changes
from baretorch.quantize.watch import OpenRunner, RunGraph, watching

EVERYTHING = np.array([-np.inf, np.inf], np.float32)  # bounds that cut nothing off
SPLITS = 4  # how often the samples are split into two halves
SHARE = 0.5  # the loss with the ranges of all samples, relative to half of them: half as many values are outside


@dataclass(frozen=True)
class Probe:
    """A running float graph. `groups` are those whose values can be cut off; `outputs` maps the graph's outputs to
    their names after that."""

    groups: tuple[Group, ...]
    outputs: Mapping[str, str]
    run: RunGraph

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]:
        """Return the values of all tensors that get a scale, and of the outputs; nothing is cut off."""
        return self.run((*inputs, *self._bounds(np.tile(EVERYTHING, (len(self.groups), 1)))))

    def cut(self, inputs: Sequence[Array], bounds: Array) -> Mapping[str, Array]:
        """Return the outputs by name, with the values of each group cut off at its row of `bounds`."""
        values = self.run((*inputs, *self._bounds(bounds)))
        return {name: values[other] for name, other in self.outputs.items()}

    def reset(self) -> None:
        """Set the state to its initial values."""
        self.run.reset()

    def _bounds(self, rows: Array) -> list[Array]:
        return [rows.reshape(-1)] if self.groups else []


@contextmanager
def probing(graph: Graph, groups: Groups, runner: OpenRunner, cuts: bool) -> Iterator[Probe]:
    """Build and start the program; with `cuts`, one whose values can be cut off."""
    cut = tuple(g for g in groups.activations if can_be_cut(g)) if cuts else ()
    whole, outputs = _with_bounds(graph, cut) if cut else (graph, {name: name for name in graph.outputs})
    members = [name for group in groups.activations for name in (*group.members, *group.seen)]
    names = list(dict.fromkeys((*members, *graph.outputs, *outputs.values())))
    with watching(whole, names, runner) as run:
        yield Probe(cut, outputs, run)


def _with_bounds(graph: Graph, groups: Sequence[Group]) -> tuple[Graph, dict[str, str]]:
    """Return the graph that takes a range for each group as its last input and cuts values off there; and its outputs,
    by those of the graph."""
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
            nodes.append(Node(Slice(0, at, at + 1), (bounds.name,), (bound,)))
            if not t.shape:  # a bound has no more dimensions than what it bounds
                scalar = fresh(wider, more, f"{bound}_scalar")
                more[scalar] = replace(bounds, name=scalar, shape=())
                nodes.append(Node(Reshape(()), (bound,), (scalar,)))
                bound = scalar
            nodes.append(Node(op, (x, bound), (y,)))
            x = y
        return nodes, x

    made = with_changes(wider, cut)
    return made, dict(zip(graph.outputs, made.outputs, strict=True))


@dataclass
class Ranges:
    """The smallest and the largest value of each group of tensors, sample by sample."""

    groups: Sequence[Group]
    found: list[Array] = field(default_factory=list)

    def see(self, values: Mapping[str, Array]) -> None:
        """Add a sample by the values of its tensors."""
        self.found.append(np.array([_range(g, values) for g in self.groups], np.float32).reshape(-1, 2))

    def of_others(self, splits: int) -> Iterator[tuple[int, Array]]:
        """Yield the number of each sample, several times, with the ranges of half of the samples, without itself. All
        ranges contain 0."""
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
    """Report whether a group's range comes from all values of its tensors. Scores are cut off on purpose."""
    return group.fixed is None and bool(group.seen) and all(type(v) is Values for v in group.seen.values())


def splits_of(graph: Graph) -> int:
    """Return how often the samples are split: once for a model with state, which is carried over between samples."""
    return 1 if graph.state else SPLITS
