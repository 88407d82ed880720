"""Fold per-channel `* constant` and `+ constant` into the layer before: BatchNorm vanishes here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Quant, Tensor, fresh, with_data
from baretorch.ops.elementwise import Add, Mul
from baretorch.passes.rewrite import rebuilt


def fold_affine(graph: Graph) -> Graph:
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
        assert weight.data is not None
        bias = tensors[layer.inputs[2]].data if len(layer.inputs) > 2 else np.zeros(weight.shape[0], np.float32)
        assert bias is not None
        channels = np.broadcast_to(factor.astype(np.float64), (weight.shape[0],))
        weight_name = weight.name
        if isinstance(node.op, Mul):
            column = channels.reshape(-1, *(1,) * (len(weight.shape) - 1))
            scaled = replace(weight, quant=weight.quant and _scaled(weight.quant, channels))
            weight_name = constant(weight.name, scaled, weight.data * column)
            bias = bias * channels
        else:
            bias = bias + channels
        stem = layer.inputs[2] if len(layer.inputs) > 2 else f"{weight.name}_bias"
        bias_name = constant(stem, replace(weight, quant=None), bias.astype(np.float32))
        assert isinstance(node.op, (Mul, Add))
        op = layer.op.clamp(node.op.lo, node.op.hi)
        assert op is not None  # what takes an affine has limits
        (out,) = node.outputs
        nodes[index] = Node(op, (x, weight_name, bias_name), layer.outputs)
        rename[out] = layer.outputs[0]  # the result keeps the layer's name and origin
        new[layer.outputs[0]] = replace(graph[layer.outputs[0]], quant=graph[out].quant, value=graph[out].holds)
        if op.takes_affine() and _read_once(graph, out, uses):
            layer_of[out] = index
    return rebuilt(graph, nodes, new.values(), rename)


def _scaled(quant: Quant, factors: Array) -> Quant:
    """The scales of a weight's channels after multiplication: what is stored stays, but for its sign."""
    scales = np.broadcast_to(np.array(quant.scale), factors.shape) * np.where(factors == 0, 1.0, np.abs(factors))
    zeros = np.broadcast_to(np.array(quant.zero_point), factors.shape)
    return Quant(tuple(map(float, scales)), tuple(map(int, zeros)), 0)


def _foldable(graph: Graph, node: Node, uses: dict[str, list[Node]]) -> bool:
    """The layer's weights are constants and only one node reads its plain result."""
    constant = all(graph[name].data is not None for name in node.inputs[1:])
    return constant and node.op.takes_affine() and _read_once(graph, node.outputs[0], uses)


def _read_once(graph: Graph, name: str, uses: dict[str, list[Node]]) -> bool:
    """One node reads it, and nothing is rounded to int8 in between."""
    return name not in graph.kept and len(uses.get(name, ())) == 1 and graph[name].quant is None


def _per_channel(graph: Graph, node: Node) -> Array | None:
    """The constant operand as a vector over the last axis, if that is all it is."""
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
