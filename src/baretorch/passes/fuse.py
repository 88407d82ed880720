"""Make one operator of several: the square of a magnitude, and clamps and max pools with the layer before them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from baretorch.ir.graph import Graph, Node, Op, Tensor
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.fft import Magnitude
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.reduce import Sum
from baretorch.passes.rewrite import rebuild


def fuse_power(graph: Graph) -> Graph:
    """Make one operator of z.abs() ** 2, z.real ** 2 + z.imag ** 2 and view_as_real(z).pow(2).sum(-1)."""
    makers = {n.outputs[0]: n for n in graph.nodes}
    nodes = []
    for node in graph.nodes:
        z = _of_size(graph, makers, node) or _of_parts(graph, makers, node) or _of_sum(graph, makers, node)
        nodes.append(node if z is None else Node(Magnitude(squared=True), (z,), node.outputs))
    return rebuild(graph, nodes)


def _of_size(graph: Graph, makers: dict[str, Node], node: Node) -> str | None:
    size = _squared_tensor(graph, node)
    maker = makers.get(size or "")
    return maker.inputs[0] if maker and maker.op == Magnitude() else None


def _of_parts(graph: Graph, makers: dict[str, Node], node: Node) -> str | None:
    if node.op != Add():
        return None
    found = {p for p in (_squared_part(graph, makers, makers.get(name)) for name in node.inputs) if p is not None}
    names = {name for name, _ in found}
    return names.pop() if len(found) == 2 and len(names) == 1 else None


def _of_sum(graph: Graph, makers: dict[str, Node], node: Node) -> str | None:
    if not isinstance(node.op, Sum) or node.op.keepdim:
        return None
    z = _squared_tensor(graph, makers.get(node.inputs[0]))
    return z if z and graph[z].shape[-1:] == (2,) and node.op.axes == (len(graph[z].shape) - 1,) else None


def _squared_tensor(graph: Graph, node: Node | None) -> str | None:
    """Return the tensor that this node squares."""
    return node.inputs[0] if _is_product(node, graph) and node.inputs[0] == node.inputs[1] else None


def _squared_part(graph: Graph, makers: dict[str, Node], node: Node | None) -> tuple[str, int] | None:
    """Return the part of a complex tensor that this node squares; z.real * z.real slices it twice."""
    if not _is_product(node, graph):
        return None
    a, b = (_part(graph, makers, name) for name in node.inputs)
    return a if a == b else None


def _is_product(node: Node | None, graph: Graph) -> TypeGuard[Node]:
    """Return whether a node multiplies floats, without int8 scales."""
    return node is not None and node.op == Mul() and not any(graph[t].quant for t in (*node.inputs, *node.outputs))


def _part(graph: Graph, makers: dict[str, Node], name: str) -> tuple[str, int] | None:
    """Return the complex tensor that this one is a part of, and the part: 0 for real, 1 for imaginary."""
    maker = makers.get(name)
    if maker is None or not isinstance(maker.op, Reshape):
        return None
    shape, maker = graph[name].shape, makers.get(maker.inputs[0])
    if maker is None or not isinstance(maker.op, Slice):
        return None
    z, op = maker.inputs[0], maker.op
    whole = graph[z].shape
    is_part = whole == (*shape, 2) and op.axis == len(shape) and op.stop == op.start + 1
    return (z, op.start) if is_part else None


def fuse_clamp(graph: Graph) -> Graph:
    """Fuse ReLU, ReLU6 and clamp into the node before them, if its operator has limits."""
    uses = graph.uses()
    nodes: list[Node] = []
    rename: dict[str, str] = {}
    scaled: list[Tensor] = []
    maker: dict[str, int] = {}

    def add_limits(node: Node) -> Op | None:
        """Return the operator before a clamp, with its limits; None if it cannot have them."""
        if not isinstance(node.op, Clamp) or (index := maker.get(node.inputs[0])) is None:
            return None
        (x,), (out,) = node.inputs, node.outputs
        alone = len(uses[x]) == 1 and x not in graph.kept
        unrounded = graph[x].quant in (None, graph[out].quant)  # by another int8 scale in between
        return nodes[index].op.clamp(node.op.lo, node.op.hi) if alone and unrounded else None

    for node in graph.nodes:
        op = add_limits(node)
        if op is None:
            maker[node.outputs[0]] = len(nodes)
            nodes.append(node)
            continue
        (x,), (out,) = node.inputs, node.outputs
        nodes[maker[x]] = replace(nodes[maker[x]], op=op)
        rename[out] = x  # the result keeps the layer's name and origin
        scaled.append(replace(graph[x], quant=graph[out].quant, value=graph[out].holds))
        maker[out] = maker[x]
    return rebuild(graph, nodes, scaled, rename)


def fuse_pool(graph: Graph) -> Graph:
    """Fuse a max pool of non-overlapping windows into the convolution before it: its full output never exists."""
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
    return rebuild(graph, nodes, pooled, rename)


def _tiles(op: MaxPool2d) -> bool:
    return op.kernel == op.stride and op.padding == (0, 0, 0, 0) and op.dilation == (1, 1) and not op.ceil_mode
