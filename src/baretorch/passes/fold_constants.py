"""Compute on the host what depends on constants only."""

from __future__ import annotations

from baretorch.ir import Graph, Node, Tensor, with_data
from baretorch.passes.rewrite import rebuilt


def fold_constants(graph: Graph) -> Graph:
    known: dict[str, Tensor] = {t.name: t for t in graph.constants()}
    folded: list[Tensor] = []
    nodes: list[Node] = []
    for node in graph.nodes:
        if not all(name in known for name in node.inputs):
            nodes.append(node)
            continue
        inputs = [known[name].data for name in node.inputs]
        for name, value in zip(node.outputs, node.op.reference(*(i for i in inputs if i is not None)), strict=True):
            known[name] = with_data(graph[name], value)
            folded.append(known[name])
    return rebuilt(graph, nodes, folded)
