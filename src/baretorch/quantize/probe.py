"""One program for all that quantization asks of a float graph: it returns the values of every tensor that gets a scale,
and cuts values off at given bounds, as a scale that is too small would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Tensor, fresh
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.quantize.groups import Group, Wanted
from baretorch.quantize.simulate import with_changes
from baretorch.quantize.unseen import can_be_cut
from baretorch.quantize.watch import RunGraph, Runner, watching

EVERYTHING = np.array([-np.inf, np.inf], np.float32)  # bounds that cut nothing off


@dataclass(frozen=True)
class Probe:
    """A running float graph. `groups` are those whose values can be cut off; `outputs` maps the graph's outputs to what
    they are after that."""

    groups: tuple[Group, ...]
    outputs: Mapping[str, str]
    run: RunGraph

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]:
        """Return the values of all tensors in view; nothing is cut off."""
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
def probing(graph: Graph, wanted: Wanted, runner: Runner, cuts: bool) -> Iterator[Probe]:
    """Build and start the program; with `cuts`, one whose values can be cut off."""
    groups = tuple(g for g in wanted.groups if can_be_cut(g)) if cuts else ()
    whole, outputs = _with_bounds(graph, groups) if groups else (graph, {name: name for name in graph.outputs})
    members = [name for group in wanted.groups for name in (*group.members, *group.seen)]
    names = list(dict.fromkeys((*members, *graph.outputs, *outputs.values())))
    with watching(whole, names, runner) as run:
        yield Probe(groups, outputs, run)


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
    return made.graph, dict(zip(graph.outputs, made.graph.outputs, strict=True))
