"""Fold explicit zero padding into the convolution that follows, also across the step to channels last."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir import Graph, Node, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.layout import Pad, Permute
from baretorch.passes.rewrite import fresh, rebuilt


def fold_padding(graph: Graph) -> Graph:
    producer = graph.producer()
    nodes: list[Node] = []
    new: dict[str, Tensor] = {}
    for node in graph.nodes:
        if isinstance(node.op, Conv2d):
            before = producer.get(node.inputs[0])
            permute = before if before is not None and isinstance(before.op, Permute) else None
            pad = producer.get(permute.inputs[0]) if permute else before
            if pad is not None and isinstance(pad.op, Pad):
                dims = permute.op.dims if permute and isinstance(permute.op, Permute) else (0, 1, 2, 3)
                sides = tuple(pad.op.padding[d] for d in dims)
                if _zeros_around(sides, pad.op.value):
                    x = pad.inputs[0]
                    if permute:  # permute what is not padded instead
                        shape = tuple(graph[x].shape[d] for d in dims)
                        name = fresh(graph, new, f"{x}_nhwc")
                        new[name] = replace(graph[permute.outputs[0]], name=name, shape=shape)
                        nodes.append(Node(permute.op, (x,), (name,)))
                        x = name
                    node = Node(_padded(node.op, sides), (x, *node.inputs[1:]), node.outputs)
        nodes.append(node)
    return rebuilt(graph, nodes, new.values())


def _padded(op: Conv2d, sides: tuple[tuple[int, int], ...]) -> Conv2d:
    t, b, l, r = op.padding
    (top, bottom), (left, right) = sides[1:3]
    return replace(op, padding=(t + top, b + bottom, l + left, r + right))


def _zeros_around(sides: tuple[tuple[int, int], ...], value: float) -> bool:
    """Zeros around the image only, and no cropping (a negative pad)."""
    n, h, w, c = sides
    return value == 0 and n == c == (0, 0) and min(*h, *w) >= 0
