"""Layers with weights of float16. Where that cannot hold the weights of an output channel, they are stored times a
power of two, and the result is divided by it: both are exact, so that only the rounding of float16 itself remains."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Tensor, fresh
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Clamp, Mul
from baretorch.ops.linear import Linear
from baretorch.ops.packing import half
from baretorch.quantize.observers import SMALLEST

KEPT = 2.0**-20  # the error of a channel's weights, in power, up to which float16 holds them: normal numbers have 2^-24
LARGEST_BIAS = 2.0**100  # after scaling: sums stay far from the end of float32


def has_float_weights(graph: Graph, node: Node) -> bool:
    """Whether the weights of a layer can be float16."""
    return isinstance(node.op, (Linear, Conv2d)) and graph[node.inputs[1]].data is not None


def in_float16(graph: Graph, node: Node, tensors: dict[str, Tensor]) -> list[Node]:
    """Return the nodes that compute a layer with weights of float16; `tensors` receives those that are new."""
    op, (x, weight, *bias) = node.op, node.inputs
    assert isinstance(op, (Linear, Conv2d))
    data = graph[weight].data
    assert data is not None
    added = graph[bias[0]].data if bias else None
    powers = _powers(data, np.zeros(len(data)) if added is None else np.abs(added.astype(np.float64)))
    if not powers.any():
        return [replace(node, op=replace(op, half=True))]
    (out,) = node.outputs
    factors = np.ldexp(np.float32(1), powers)

    def scaled(name: str) -> str:
        own, t = fresh(graph, tensors, f"{name}_scaled"), graph[name]
        assert t.data is not None
        by = factors.reshape(-1, *[1] * (len(t.shape) - 1))
        tensors[own] = replace(t, name=own, quant=None, data=np.asarray(t.data * by, np.float32))
        return own

    def value(suffix: str, shape: tuple[int, ...], made: Array | None = None) -> str:
        own = fresh(graph, tensors, f"{out}_{suffix}")
        tensors[own] = replace(graph[out], name=own, quant=None, shape=shape, data=made)
        return own

    limited = (op.lo, op.hi) != (-inf, inf)
    whole = value("scaled", graph[out].shape)
    back = value("factors", (len(data),), np.ldexp(np.float32(1), -powers))
    sums = value("whole", graph[out].shape) if limited else out
    layer = replace(op, half=True, lo=-inf, hi=inf)
    nodes = [Node(layer, (x, scaled(weight), *map(scaled, bias)), (whole,)), Node(Mul(), (whole, back), (sums,))]
    return [*nodes, Node(Clamp(op.lo, op.hi), (sums,), (out,))] if limited else nodes


def _powers(weight: Array, bias: Array) -> Array:
    """The power of two to scale each output channel with; 0 where float16 holds the weights as they are."""
    rows = weight.reshape(len(weight), -1).astype(np.float64)
    error = np.square(half.nearest(rows.astype(np.float32)).astype(np.float64) - rows).sum(axis=1)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    lost = ~(error <= KEPT * np.square(rows).sum(axis=1)) & (largest >= SMALLEST)
    powers = 1 - np.frexp(largest)[1]
    most = np.floor(np.log2(LARGEST_BIAS / np.maximum(bias, 1.0)))
    return np.where(lost, np.minimum(powers, most), 0).astype(np.int32)
