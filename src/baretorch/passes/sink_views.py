"""Move reshapes below the elementwise operators that follow, so that what can be fused stands side by side.

A 1-D convolution is one of images of height 1: between it and its BatchNorm, ReLU and pool stand reshapes.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from baretorch.ir.graph import Graph, Node, Shape, Tensor, fresh, with_data
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.layout import Reshape
from baretorch.passes.rewrite import rebuilt


def sink_views(graph: Graph) -> Graph:
    tensors = dict(graph.tensors)
    new: dict[str, Tensor] = {}
    nodes: list[Node] = []
    above: dict[str, str] = {}  # a reshape's result -> what it reshapes

    def added(t: Tensor) -> str:
        t = replace(t, name=fresh(graph, new, f"{t.name}_view"))
        new[t.name] = tensors[t.name] = t
        return t.name

    def operand(name: str, shape: Shape) -> str | None:
        """What stands for an operand if the operator is applied before the reshape, to `shape`, if anything does."""
        t = tensors[name]
        if t.data is None:
            x = above.get(name)
            return x if x is not None and tensors[x].shape == shape else None
        if t.count == 1:
            return added(with_data(t, t.data.reshape(())))
        if t.shape[-1:] == (t.count,) == shape[-1:]:  # one per channel
            return added(with_data(t, t.data.reshape(-1)))
        return None

    for node in graph.nodes:
        x = next((above[name] for name in node.inputs if name in above), None)
        if x is not None and isinstance(node.op, (Clamp, Add, Mul)):
            (out,) = node.outputs
            before = tensors[x].shape
            operands = [operand(name, before) for name in node.inputs]
            if None not in operands and prod(before) == graph[out].count:
                name = added(replace(graph[out], shape=before))
                nodes.append(Node(node.op, tuple(o for o in operands if o is not None), (name,)))
                node = Node(Reshape(graph[out].shape), (name,), (out,))
        if isinstance(node.op, Reshape):
            above[node.outputs[0]] = node.inputs[0]
        nodes.append(node)
    return rebuilt(graph, nodes, new.values())
