"""Merge chains of reshapes and drop those that change nothing. The planner makes the rest aliases."""

from __future__ import annotations

from baretorch.ir.graph import Graph, Node
from baretorch.ops.layout import Permute, Reshape
from baretorch.passes.rewrite import rebuilt


def views(graph: Graph) -> Graph:
    producer: dict[str, Node] = {}
    rename: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        x = node.inputs[0] if node.inputs else ""
        x = rename.get(x, x)
        if isinstance(node.op, Permute) and _moves_nothing(node.op.dims, graph[x].shape):
            node = Node(Reshape(graph[node.outputs[0]].shape), (x,), node.outputs)
        if isinstance(node.op, Reshape):
            before = producer.get(x)
            if before is not None and isinstance(before.op, Reshape):
                x = before.inputs[0]
            if graph[x].shape == node.op.shape:
                rename[node.outputs[0]] = x
                continue
            node = Node(node.op, (x,), node.outputs)
        for out in node.outputs:
            producer[out] = node
        nodes.append(node)
    return rebuilt(graph, nodes, rename=rename)


def _moves_nothing(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Only dimensions of size 1 change places, so every element stays where it is in memory."""
    kept = [d for d in dims if shape[d] != 1]
    return kept == sorted(kept)
