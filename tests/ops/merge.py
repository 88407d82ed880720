"""All cases as one model with many inputs and outputs, so that one program runs the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from baretorch.ir import Array, Graph, Node, Tensor
from baretorch.verify import verify
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
    """Of the case that a tensor of the merged graph belongs to."""
    return int(tensor[1 : tensor.index("_")])


def shared_out(cases: Sequence[Model], outputs: Sequence[Array]) -> list[Outputs]:
    """The merged graph's outputs, case by case."""
    rest = iter(outputs)
    return [tuple(next(rest) for _ in case.graph().outputs) for case in cases]
