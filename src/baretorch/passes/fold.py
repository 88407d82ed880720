"""Compute constants on the host, and fold factors per channel and zero padding into the layers next to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Op, Quant, Shape, Tensor, fresh, with_data
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.move import Choose
from baretorch.passes.rewrite import rebuild

LARGEST = 1 << 26  # bytes: more than any chip's flash; the planner refuses larger constants


def fold_constants(graph: Graph) -> Graph:
    """Compute what depends on constants only."""
    known: dict[str, Tensor] = {t.name: t for t in graph.constants()}
    folded: list[Tensor] = []
    nodes: list[Node] = []
    rename: dict[str, str] = {}  # results of a choose with a constant condition
    for node in graph.nodes:
        condition = known.get(node.inputs[0]) if isinstance(node.op, Choose) else None
        if condition is not None and condition.data is not None:
            rename[node.outputs[0]] = node.inputs[1 if condition.data.all() else 2]
            continue
        small = sum(graph[name].bytes for name in node.outputs) <= LARGEST
        if not small or not all(name in known for name in node.inputs):
            nodes.append(node)
            continue
        inputs = [known[name].data for name in node.inputs]
        for name, value in zip(node.outputs, node.op.reference(*(i for i in inputs if i is not None)), strict=True):
            known[name] = with_data(graph[name], value)
            folded.append(known[name])
    return rebuild(graph, nodes, folded, rename)


def fold_affine(graph: Graph) -> Graph:
    """Fold `* constant` and `+ constant` per channel into the layer before. BatchNorm vanishes here."""
    uses = graph.uses()
    tensors = dict(graph.tensors)
    new: dict[str, Tensor] = {}
    layer_of: dict[str, int] = {}  # tensor -> index of the layer node that makes it
    nodes: list[Node] = []
    rename: dict[str, str] = {}

    def constant(stem: str, like: Tensor, data: Array) -> str:
        name = fresh(graph, new, stem)
        new[name] = with_data(replace(like, name=name), data)
        tensors[name] = new[name]
        return name

    for node in graph.nodes:
        index = layer_of.get(node.inputs[0]) if node.inputs else None
        factor = _per_channel(graph, node) if index is not None else None
        if index is None or factor is None:
            if _foldable(graph, node, uses):
                layer_of[node.outputs[0]] = len(nodes)
            nodes.append(node)
            continue
        layer = nodes[index]
        x, weight = layer.inputs[0], tensors[layer.inputs[1]]
        bias = tensors[layer.inputs[2]].numbers if len(layer.inputs) > 2 else np.zeros(weight.shape[0], np.float32)
        channels = np.broadcast_to(factor.astype(np.float64), (weight.shape[0],))
        weight_name = weight.name
        if isinstance(node.op, Mul):
            column = channels.reshape(-1, *(1,) * (len(weight.shape) - 1))
            scaled = replace(weight, quant=weight.quant and _scale(weight.quant, channels))
            weight_name = constant(weight.name, scaled, weight.numbers * column)
            bias = bias * channels
        else:
            bias = bias + channels
        stem = layer.inputs[2] if len(layer.inputs) > 2 else f"{weight.name}_bias"
        bias_name = constant(stem, replace(weight, quant=None), bias.astype(np.float32))
        assert isinstance(node.op, (Mul, Add))
        op = layer.op.clamp(node.op.lo, node.op.hi)
        assert op is not None  # an operator that takes factors has limits
        (out,) = node.outputs
        nodes[index] = Node(op, (x, weight_name, bias_name), layer.outputs)
        rename[out] = layer.outputs[0]  # the result keeps the layer's name and origin
        new[layer.outputs[0]] = replace(graph[layer.outputs[0]], quant=graph[out].quant, value=graph[out].holds)
        if op.takes_affine() and _read_once(graph, out, uses):
            layer_of[out] = index
    return rebuild(graph, nodes, new.values(), rename)


def _scale(quant: Quant, factors: Array) -> Quant:
    """Return the scales of a weight's channels after multiplication. Stored values keep their magnitude."""
    scales = np.broadcast_to(np.array(quant.scale), factors.shape) * np.where(factors == 0, 1.0, np.abs(factors))
    zeros = np.broadcast_to(np.array(quant.zero_point), factors.shape)
    return Quant(tuple(map(float, scales)), tuple(map(int, zeros)), 0)


def _foldable(graph: Graph, node: Node, uses: dict[str, list[Node]]) -> bool:
    """Report whether the layer's weights are constants and only one node reads its plain result."""
    constant = all(graph[name].data is not None for name in node.inputs[1:])
    return constant and node.op.takes_affine() and _read_once(graph, node.outputs[0], uses)


def _read_once(graph: Graph, name: str, uses: dict[str, list[Node]]) -> bool:
    """Report whether one node reads the tensor, and nothing is rounded to int8 in between."""
    return name not in graph.kept and len(uses.get(name, ())) == 1 and graph[name].quant is None


def _per_channel(graph: Graph, node: Node) -> Array | None:
    """Return the constant operand as a vector over the last axis, or None if it varies along others."""
    if not isinstance(node.op, (Mul, Add)):
        return None
    other = graph[node.inputs[1]]
    channels = graph[node.inputs[0]].shape[-1]
    if (
        other.data is None
        or other.count not in (1, channels)
        or graph[node.outputs[0]].shape != graph[node.inputs[0]].shape
    ):
        return None
    if other.count == channels and channels != 1 and other.shape[-1] != channels:
        return None
    return other.data.reshape(-1)


Sides = tuple[tuple[int, int], ...]  # elements added before and after, per dimension


def fold_padding(graph: Graph) -> Graph:
    """Fold zero padding into the convolution that follows, also across permutations and added dimensions of 1."""
    producer = graph.producer()
    nodes: list[Node] = []
    new: dict[str, Tensor] = {}

    def find_unpadded(name: str, zero: int) -> tuple[str, Sides] | None:
        """Return what to read instead of a tensor that is padded with `zero`, and the padding that is then missing
        around it."""
        node = producer.get(name)
        if node is None:
            return None
        if isinstance(node.op, Pad):
            return (node.inputs[0], node.op.padding) if node.op.value == zero else None
        found = find_unpadded(node.inputs[0], zero) if isinstance(node.op, (Permute, Reshape)) else None
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
            found = find_unpadded(node.inputs[0], node.op.x_zero if isinstance(node.op, QConv2d) else 0)
            if found is not None and _around_image(found[1]):
                node = Node(_add_padding(node.op, found[1]), (found[0], *node.inputs[1:]), node.outputs)
        nodes.append(node)
    return rebuild(graph, nodes, new.values())


def _through(op: Op, shape: Shape, sides: Sides) -> Sides | None:
    """Return the padding after a permutation or a reshape of the padded tensor; None if it is not padding any more."""
    if isinstance(op, Permute):
        return tuple(sides[d] for d in op.dims)
    assert isinstance(op, Reshape)
    if [n for n in shape if n != 1] != [n for n in op.shape if n != 1]:
        return None
    if any(n == 1 and side != (0, 0) for n, side in zip(shape, sides, strict=True)):
        return None  # cropped to one element
    rest = iter([side for n, side in zip(shape, sides, strict=True) if n != 1])
    return tuple((0, 0) if n == 1 else next(rest) for n in op.shape)


def _add_padding(op: Conv2d | QConv2d, sides: Sides) -> Op:
    t, b, l, r = op.padding
    (top, bottom), (left, right) = sides[1:3]
    return replace(op, padding=(t + top, b + bottom, l + left, r + right))


def _around_image(sides: Sides) -> bool:
    """Return whether only the image is padded, and nothing is cropped (a negative pad)."""
    n, h, w, c = sides
    return n == c == (0, 0) and min(*h, *w) >= 0
