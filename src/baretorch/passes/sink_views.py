"""Move reshapes below the elementwise operators that follow, so that what can be fused stands side by side.

A 1-D convolution is one of images of height 1: between it and its BatchNorm, ReLU and pool stand reshapes.
"""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir import Graph, Node, Tensor, with_data
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.layout import Reshape
from baretorch.passes.rewrite import fresh, rebuilt


def sink_views(graph: Graph) -> Graph:
    uses = graph.uses()
    tensors = dict(graph.tensors)
    new: dict[str, Tensor] = {}
    nodes: list[Node] = []
    above: dict[str, str] = {}  # a reshape's result -> what it reshapes

    def tensor(t: Tensor) -> str:
        new[t.name] = tensors[t.name] = t
        return t.name

    def operand(name: str, like: Tensor) -> str | None:
        """What stands for an operand if the operator is applied before the reshape; None if nothing does."""
        t, to = tensors[name], like.shape
        if t.data is None:
            x = above.get(name)
            return x if x is not None and tensors[x].shape == to else None
        if t.count == 1 or (t.count == t.shape[-1] and to[-1:] == t.shape[-1:]):  # a number, or one per channel
            shape = t.shape[-1:] if t.count > 1 else ()
            named = replace(t, name=fresh(graph, new, f"{name}_view"))
            return tensor(with_data(named, t.data.reshape(shape)))
        return None

    for node in graph.nodes:
        x = above.get(node.inputs[0]) if node.inputs else None
        if x is not None and isinstance(node.op, (Clamp, Add, Mul)) and len(uses[node.inputs[0]]) == 1:
            (out,) = node.outputs
            operands = [operand(name, tensors[x]) for name in node.inputs]
            same = graph[out].shape == graph[node.inputs[0]].shape
            if same and None not in operands:
                name = tensor(replace(graph[out], name=fresh(graph, new, f"{out}_view"), shape=tensors[x].shape))
                nodes.append(Node(node.op, tuple(o for o in operands if o is not None), (name,)))
                node = Node(Reshape(graph[out].shape), (name,), (out,))
        if isinstance(node.op, Reshape):
            above[node.outputs[0]] = node.inputs[0]
        nodes.append(node)
    return rebuilt(graph, nodes, new.values())
