"""Compute on the host what depends on constants only."""

from __future__ import annotations

from baretorch.ir import Graph, Node, Tensor, with_data
from baretorch.passes.rewrite import rebuilt

LARGEST = 1 << 26  # bytes: more than any chip's flash; what is larger is left to be refused by the planner


def fold_constants(graph: Graph) -> Graph:
    known: dict[str, Tensor] = {t.name: t for t in graph.constants()}
    folded: list[Tensor] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        small = sum(graph[name].bytes for name in node.outputs) <= LARGEST
        if not small or not all(name in known for name in node.inputs):
            nodes.append(node)
            continue
        inputs = [known[name].data for name in node.inputs]
        for name, value in zip(node.outputs, node.op.reference(*(i for i in inputs if i is not None)), strict=True):
            known[name] = with_data(graph[name], value)
            folded.append(known[name])
    return rebuilt(graph, nodes, folded)
