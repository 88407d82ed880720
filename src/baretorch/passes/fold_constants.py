"""Compute on the host what depends on constants only."""

from __future__ import annotations

from baretorch.ir.graph import Graph, Node, Tensor, with_data
from baretorch.ops.move import Choose
from baretorch.passes.rewrite import rebuilt

LARGEST = 1 << 26  # bytes: more than any chip's flash; what is larger is left to be refused by the planner


def fold_constants(graph: Graph) -> Graph:
    known: dict[str, Tensor] = {t.name: t for t in graph.constants()}
    folded: list[Tensor] = []
    nodes: list[Node] = []
    rename: dict[str, str] = {}  # what is chosen by a constant
    for node in graph.nodes:
        condition = known.get(node.inputs[0]) if isinstance(node.op, Choose) else None
        if condition is not None and condition.data is not None:
            rename[node.outputs[0]] = node.inputs[1 if condition.data.all() else 2]
            continue
        small = sum(graph[name].bytes for name in node.outputs) <= LARGEST
        if not small or not all(name in known for name in node.inputs):
            nodes.append(node)
            continue
        inputs = [known[name].data for name in node.inputs]
        for name, value in zip(node.outputs, node.op.reference(*(i for i in inputs if i is not None)), strict=True):
            known[name] = with_data(graph[name], value)
            folded.append(known[name])
    return rebuilt(graph, nodes, folded, rename)
