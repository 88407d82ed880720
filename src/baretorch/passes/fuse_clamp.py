"""Fuse ReLU, ReLU6 and clamp into the node that makes their input."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir import Graph, Node, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Arithmetic, Clamp
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.passes.rewrite import rebuilt

LIMITED = (Linear, Matmul, Conv2d, ConvTranspose2d, Arithmetic, Clamp)  # operators with limits of their own


def fuse_clamp(graph: Graph) -> Graph:
    uses = graph.uses()
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    scaled: list[Tensor] = []
    maker: dict[str, int] = {}
    for node in graph.nodes:
        if isinstance(node.op, Clamp):
            (x,), (out,) = node.inputs, node.outputs
            index = maker.get(x)
            if index is not None and len(uses[x]) == 1 and x not in graph.outputs and _same_scale(graph[x], graph[out]):
                op = nodes[index].op
                assert isinstance(op, LIMITED)
                lo, hi = compose((op.lo, op.hi), (node.op.lo, node.op.hi))
                nodes[index] = replace(nodes[index], op=replace(op, lo=lo, hi=hi))
                rename[out] = x  # the result keeps the layer's name and origin
                scaled.append(replace(graph[x], quant=graph[out].quant, value=graph[out].holds))
                maker[out] = index
                continue
        if isinstance(node.op, LIMITED):
            maker[node.outputs[0]] = len(nodes)
        nodes.append(node)
    return rebuilt(graph, nodes, scaled, rename)


def _same_scale(before: Tensor, after: Tensor) -> bool:
    """Nothing is rounded to another int8 scale in between."""
    return before.quant in (None, after.quant)


def compose(first: tuple[float, float], then: tuple[float, float]) -> tuple[float, float]:
    """The limits that do both: clamp(clamp(v, first), then). PyTorch's clamp lets the upper limit win."""
    lo, hi = (min(max(limit, then[0]), then[1]) for limit in first)
    return lo, hi
