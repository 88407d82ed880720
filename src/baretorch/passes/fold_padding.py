"""Fold padding with zeros into the convolution that follows, also across permutations and added dimensions of 1."""

from __future__ import annotations

from dataclasses import replace

from baretorch.ir.graph import Graph, Node, Op, Shape, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.passes.rewrite import rebuilt

Sides = tuple[tuple[int, int], ...]  # elements added before and after, per dimension


def fold_padding(graph: Graph) -> Graph:
    producer = graph.producer()
    nodes: list[Node] = []
    new: dict[str, Tensor] = {}

    def unpadded(name: str, zero: int) -> tuple[str, Sides] | None:
        """What to read instead of a tensor padded with `zero`, made without it, and what then is missing around it."""
        node = producer.get(name)
        if node is None:
            return None
        if isinstance(node.op, Pad):
            return (node.inputs[0], node.op.padding) if node.op.value == zero else None
        found = unpadded(node.inputs[0], zero) if isinstance(node.op, (Permute, Reshape)) else None
        if found is None:
            return None
        x, sides = found
        moved = _through(node.op, graph[node.inputs[0]].shape, sides)
        if moved is None:
            return None
        shape = tuple(n - a - b for n, (a, b) in zip(graph[name].shape, moved, strict=True))
        out = fresh(graph, new, f"{name}_unpadded")
        new[out] = replace(graph[name], name=out, shape=shape)
        nodes.append(Node(Reshape(shape) if isinstance(node.op, Reshape) else node.op, (x,), (out,)))
        return out, moved

    for node in graph.nodes:
        if isinstance(node.op, (Conv2d, QConv2d)):
            found = unpadded(node.inputs[0], node.op.x_zero if isinstance(node.op, QConv2d) else 0)
            if found is not None and _around_image(found[1]):
                node = Node(_padded(node.op, found[1]), (found[0], *node.inputs[1:]), node.outputs)
        nodes.append(node)
    return rebuilt(graph, nodes, new.values())


def _through(op: Op, shape: Shape, sides: Sides) -> Sides | None:
    """Where the sides are after a permutation or a reshape of the padded tensor; None if they are nowhere."""
    if isinstance(op, Permute):
        return tuple(sides[d] for d in op.dims)
    assert isinstance(op, Reshape)
    if [n for n in shape if n != 1] != [n for n in op.shape if n != 1]:
        return None
    if any(n == 1 and side != (0, 0) for n, side in zip(shape, sides, strict=True)):
        return None  # cropped to one element
    rest = iter([side for n, side in zip(shape, sides, strict=True) if n != 1])
    return tuple((0, 0) if n == 1 else next(rest) for n in op.shape)


def _padded(op: Conv2d | QConv2d, sides: Sides) -> Op:
    t, b, l, r = op.padding
    (top, bottom), (left, right) = sides[1:3]
    return replace(op, padding=(t + top, b + bottom, l + left, r + right))


def _around_image(sides: Sides) -> bool:
    """Around the image only, and no cropping (a negative pad)."""
    n, h, w, c = sides
    return n == c == (0, 0) and min(*h, *w) >= 0
