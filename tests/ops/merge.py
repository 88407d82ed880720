"""Merge all cases into one model with many inputs and outputs, so that one program runs the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Tensor
from baretorch.ir.verify import verify
from tests.ops.case import Outputs


class Model(Protocol):
    """A graph, and what its first inputs are given."""

    def graph(self) -> Graph: ...

    def arrays(self) -> tuple[Array, ...]: ...


def merged(cases: Sequence[Model]) -> tuple[Graph, list[Array]]:
    """One graph that holds each case's graph, names prefixed by its number, and all inputs."""
    tensors: dict[str, Tensor] = {}
    nodes: list[Node] = []
    inputs: list[str] = []
    outputs: list[str] = []
    arrays: list[Array] = []
    for i, case in enumerate(cases):
        graph = case.graph()
        new = {name: f"k{i}_{name}" for name in graph.tensors}
        tensors |= {new[n]: replace(t, name=new[n]) for n, t in graph.tensors.items()}
        for node in graph.nodes:
            nodes.append(Node(node.op, tuple(new[n] for n in node.inputs), tuple(new[n] for n in node.outputs)))
        inputs += [new[n] for n in graph.inputs]
        outputs += [new[n] for n in graph.outputs]
        arrays += case.arrays()[: len(graph.inputs)]
    return verify(Graph("cases", tensors, tuple(nodes), tuple(inputs), tuple(outputs))), arrays


def number(tensor: str) -> int:
    """Return the number of the case that a tensor of the merged graph belongs to."""
    return int(tensor[1 : tensor.index("_")])


def shared_out(cases: Sequence[Model], outputs: Sequence[Array]) -> list[Outputs]:
    """The merged graph's outputs, case by case."""
    rest = iter(outputs)
    return [tuple(next(rest) for _ in case.graph().outputs) for case in cases]


def need_written(cases: Sequence[Model], runs: Sequence[Sequence[Outputs]]) -> list[Outputs]:
    """Return the outputs of the first run. All must be equal: before each, memory was filled with another pattern."""
    first = list(runs[0])
    found = []
    for case, *outputs in zip(cases, *runs, strict=True):
        for ys in zip(*outputs, strict=True):
            patterns = [np.ascontiguousarray(y).view(np.uint8).reshape(*y.shape, y.itemsize) for y in ys]
            unwritten = sum((patterns[0] != p).any(axis=-1) for p in patterns[1:])
            if places := np.argwhere(unwritten).tolist():
                named = getattr(case, "name", "a case")
                found.append(f"{named}: {len(places)} of {ys[0].size} elements, the first at {places[0]}")
    assert not found, "outputs depend on what memory held before the run:\n" + "\n".join(found)
    return first
