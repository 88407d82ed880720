"""Make one operator of the square of a complex number's magnitude, in the ways that models write it."""

from __future__ import annotations

from typing import TypeGuard

from baretorch.ir.graph import Graph, Node
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.fft import Magnitude
from baretorch.ops.layout import Reshape
from baretorch.ops.move import Slice
from baretorch.ops.reduce import Sum
from baretorch.passes.rewrite import rebuilt


def fuse_power(graph: Graph) -> Graph:
    """z.abs() ** 2, z.real ** 2 + z.imag ** 2 and view_as_real(z).pow(2).sum(-1)."""
    makers = {n.outputs[0]: n for n in graph.nodes}
    nodes = []
    for node in graph.nodes:
        z = _of_size(graph, makers, node) or _of_parts(graph, makers, node) or _of_sum(graph, makers, node)
        nodes.append(node if z is None else Node(Magnitude(squared=True), (z,), node.outputs))
    return rebuilt(graph, nodes)


def _of_size(graph: Graph, makers: dict[str, Node], node: Node) -> str | None:
    size = _squared(graph, node)
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
    z = _squared(graph, makers.get(node.inputs[0]))
    return z if z and graph[z].shape[-1:] == (2,) and node.op.axes == (len(graph[z].shape) - 1,) else None


def _squared(graph: Graph, node: Node | None) -> str | None:
    """Of what this node is the square."""
    return node.inputs[0] if _is_product(node, graph) and node.inputs[0] == node.inputs[1] else None


def _squared_part(graph: Graph, makers: dict[str, Node], node: Node | None) -> tuple[str, int] | None:
    """Of which part this node is the square; z.real * z.real takes it out twice."""
    if not _is_product(node, graph):
        return None
    a, b = (_part(graph, makers, name) for name in node.inputs)
    return a if a == b else None


def _is_product(node: Node | None, graph: Graph) -> TypeGuard[Node]:
    """In float: no int8 scale is noted."""
    return node is not None and node.op == Mul() and not any(graph[t].quant for t in (*node.inputs, *node.outputs))


def _part(graph: Graph, makers: dict[str, Node], name: str) -> tuple[str, int] | None:
    """The complex tensor that this is a part of, and which: 0 for the real part, 1 for the imaginary one."""
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
