"""Fold explicit zero padding into the convolution that follows."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir import Graph, Node
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.layout import Pad
from baretorch.passes.rewrite import rebuilt


def fold_padding(graph: Graph) -> Graph:
    producer = graph.producer()
    nodes: list[Node] = []
    for node in graph.nodes:
        before = producer.get(node.inputs[0]) if node.inputs else None
        if isinstance(node.op, Conv2d) and before is not None and isinstance(before.op, Pad) and _zeros(before.op):
            (top, bottom), (left, right) = before.op.padding[1:3]
            t, b, l, r = node.op.padding
            op = replace(node.op, padding=(t + top, b + bottom, l + left, r + right))
            node = Node(op, (before.inputs[0], *node.inputs[1:]), node.outputs)
        nodes.append(node)
    return rebuilt(graph, nodes)


def _zeros(op: Pad) -> bool:
    """Zeros around the image only, and no cropping (a negative pad)."""
    n, h, w, c = op.padding
    return op.value == 0 and n == c == (0, 0) and min(*h, *w) >= 0
