"""`--requant narrow`: scales of weights such that 32 bits are enough behind the layers. See docs/arithmetic.md."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Graph, Node, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.layer import narrow_scales
from baretorch.ops.linear import Linear


def with_narrow(graph: Graph) -> Graph:
    """The notes of a quantized graph, with coarser scales for weights. Each layer has a weight of its own, whose scales
    depend on those of its input and output."""
    tensors, nodes = dict(graph.tensors), list(graph.nodes)
    for i, node in enumerate(nodes):
        scales = narrow_scales(graph, node) if _of_8_bits(graph, node) else None
        if scales is not None:
            x, weight, *rest = node.inputs
            t = graph[weight]
            assert t.quant is not None
            name = fresh(graph, tensors, f"{weight}_narrow")
            quant = replace(t.quant, scale=tuple(map(float, scales)), zero_point=(0,) * len(scales), axis=0)
            tensors[name] = replace(t, name=name, quant=quant)
            nodes[i] = replace(node, inputs=(x, name, *rest))
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _of_8_bits(graph: Graph, node: Node) -> bool:
    """A layer with weights that takes and gives int8."""
    noted = [graph[name].quant for name in (*node.inputs[:1], *node.outputs)]
    return isinstance(node.op, (Linear, Conv2d)) and all(q is not None and q.bits == 8 for q in noted)
