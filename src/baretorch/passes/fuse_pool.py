"""Fuse a max pool of non-overlapping windows into the convolution before it: its full output never exists."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.pool import MaxPool2d
from baretorch.passes.rewrite import rebuilt


def fuse_pool(graph: Graph) -> Graph:
    uses = graph.uses()
    nodes: list[Node] = []
    pooled: list[Tensor] = []
    rename: dict[str, str] = {}
    conv: dict[str, int] = {}
    for node in graph.nodes:
        x = node.inputs[0] if node.inputs else ""
        index = conv.get(x)
        free = index is not None and len(uses[x]) == 1 and x not in graph.kept
        free = free and graph[x].quant in (None, graph[node.outputs[0]].quant)  # no int8 rounding in between
        if index is not None and free and isinstance(node.op, MaxPool2d) and _tiles(node.op):
            (out,) = node.outputs
            op = nodes[index].op
            assert isinstance(op, (Conv2d, QConv2d))
            nodes[index] = replace(nodes[index], op=replace(op, pool=node.op.kernel))
            pooled.append(replace(graph[x], shape=graph[out].shape, quant=graph[out].quant, value=graph[out].holds))
            rename[out] = x  # the result keeps the layer's name and origin
            continue
        if isinstance(node.op, (Conv2d, QConv2d)) and node.op.pool == (1, 1):
            conv[node.outputs[0]] = len(nodes)
        nodes.append(node)
    return rebuilt(graph, nodes, pooled, rename)


def _tiles(op: MaxPool2d) -> bool:
    return op.kernel == op.stride and op.padding == (0, 0, 0, 0) and op.dilation == (1, 1) and not op.ceil_mode
