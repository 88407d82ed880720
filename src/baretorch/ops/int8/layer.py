"""Shared parts of int8 layers with weights: int8 weights, and an int32 bias and multiplier per output channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Op, Quant, Shape, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import data_of
from baretorch.ops.int8 import narrow_requant
from baretorch.ops.int8.arithmetic import multipliers
from baretorch.ops.int8.groups_of_inputs import GROUP, round_in_groups, split_groups
from baretorch.ops.int8.rules import StaysFloat, Walk, fits_32_bits, limits

LARGEST_BIAS = 2**28  # in an accumulator: a multiplier then loses less than a step's 32nd part of it


def need_accumulator(op: Op, inputs: Sequence[Tensor], bits: int = 8, group: int = 0) -> None:
    """Raise unless these are an int8 input, a weight of 8 or 4 bits, perhaps in groups, and an int32 bias and
    multiplier per output channel."""
    _, weight, bias, multiplier = inputs
    types = tuple(t.dtype for t in inputs)
    need(
        types == (DType.INT8, DType.INT8, DType.INT32, DType.INT32)
        and bias.shape == multiplier.shape == weight.shape[:1],
        op,
        "the inputs are not those of an int8 layer",
        inputs,
        "x int8, weight int8[out, ...], bias int32[out], multiplier int32[out]",
    )
    if group:
        rows = None if weight.data is None else weight.data.reshape(len(weight.data), -1)
        need(
            bits == 4 and group == GROUP and (rows is None or split_groups(rows) is not None),
            op,
            f"the weight is not one of {bits} bits in groups of {group}",
            inputs,
            f"4 bits, and in groups of {GROUP} inputs multiples of weights within -8..7",
        )
        return
    valid = bits == 8 or (bits == 4 and (weight.data is None or bool((np.abs(weight.data * 2 + 1) <= 15).all())))
    need(valid, op, f"the weight is not one of {bits} bits", inputs, "8 bits, or 4 and weights within -8..7")


@dataclass(frozen=True)
class Int8Layer:
    """The parts of a layer's int8 form: zero points, shift, limits, and the names of its constants."""

    x_zero: int
    zero: int
    shift: int
    lo: int
    hi: int
    weight: str
    bias: str
    multiplier: str
    bits: int  # of a weight
    group: int  # of inputs whose weights have a factor

    @property
    def constants(self) -> tuple[str, str, str]:
        return (self.weight, self.bias, self.multiplier)


def layer_of(walk: Walk, node: Node, lo: float, hi: float, folds: bool = True) -> Int8Layer:
    """Return the int8 form of a layer of x, weight and perhaps a bias, with limits. If it `folds`, the input's zero
    point is part of the bias."""
    x, y = walk.scale(node.inputs[0]), walk.scale(node.outputs[0])
    w, quant, bias = weights_of(walk.graph, node)
    zero = x.zero_point[0] if folds else 0
    stored = store(_rows(w), bias, np.array(quant.scale), x.scale[0], y.scale[0], x_zero=zero, group=quant.group)
    low, high = limits(lo, hi, y)
    own = (x.zero_point[0], y.zero_point[0], stored.shift, low, high)
    return Int8Layer(*own, *stored.constants(walk, w, w.shape), quant.bits, quant.group)


def weights_of(graph: Graph, node: Node) -> tuple[Tensor, Quant, Array]:
    """Return the weight of a layer, its scale, and its bias or zeros; raise if it has no int8 form."""
    w, *biases = graph.of(node.inputs[1:])
    if w.data is None or any(b.data is None for b in biases):
        raise StaysFloat("its weight or bias is computed")
    if w.quant is None or w.quant.axis not in (None, 0) or any(w.quant.zero_point):
        raise StaysFloat("its weight has no symmetric int8 scale")
    return w, w.quant, _bias(w, biases)


@dataclass(frozen=True)
class StoredLayer:
    """Weights and biases of a layer as integers, and the factors of its sums."""

    rows: Array
    bias: Array
    multiplier: Array
    shift: int

    def constants(self, walk: Walk, like: Tensor, shape: Shape) -> tuple[str, str, str]:
        """Add the constants to the graph, named after a tensor, and return their names."""
        return (
            walk.constant(like, "int8", self.rows.astype(np.int8).reshape(shape)),
            walk.constant(like, "bias", self.bias.astype(np.int32)),
            walk.constant(like, "multiplier", self.multiplier),
        )


def store(
    real: Array,
    bias: Array,
    scales: Array,
    s_x: float,
    s_y: float,
    x_zero: int = 0,
    group: int = 0,
    steps: int = 1,
    largest: int = 255,
) -> StoredLayer:
    """Return rows of real weights and their biases as integers, with the input's zero point folded in, for activations
    with these scales, `steps` times as fine as those of int8. No input less its zero point is above `largest`."""
    bias = _reachable(bias, steps * real, s_x, steps * s_y)
    s_w = weight_scales(scales, real, bias, s_x, s_y)
    rows, whole = _round(real, bias, s_w, s_x, x_zero, group)
    multiplier, shift = multipliers([float(f) for f in s_x * s_w / s_y])
    fits_32_bits(int((np.abs(whole) + largest * np.abs(rows).sum(axis=1)).max(initial=0)) << shift)
    return StoredLayer(rows, whole, multiplier, shift)


def narrow_scales(graph: Graph, node: Node) -> Array | None:
    """Return scales for the weights of a layer between tensors with scales, a little coarser than its own, such that
    the layer is narrow: the factor of each channel is a multiple of one power of two, the finest for which 32 bits are
    enough. Return None if that would be too coarse. See docs/arithmetic.md."""
    (w, *biases), x, y = graph.of(node.inputs[1:]), graph[node.inputs[0]].quant, graph[node.outputs[0]].quant
    if w.data is None or w.quant is None or x is None or y is None or not w.data.size:
        return None
    s_x, s_y, zero = x.scale[0], y.scale[0], y.zero_point[0]
    real = _rows(w)
    bias = _reachable(_bias(w, biases), real, s_x, s_y)
    s_w = weight_scales(np.array(w.quant.scale), real, bias, s_x, s_y)
    for shift in range(narrow_requant.LARGEST_SHIFT, 0, -1):
        whole = np.ceil(s_w * s_x / s_y * 2.0**shift)
        if whole.max() < narrow_requant.LEAST_MULTIPLIER:
            return None
        if whole.max() < 2**31:
            scales = np.asarray(whole * s_y / (s_x * 2.0**shift))
            rows, biases_ = _round(real, bias, scales, s_x, x.zero_point[0])
            if narrow_requant.fits(narrow_requant.NarrowRequant(whole.astype(np.int64), shift), rows, biases_, zero):
                return scales
    return None


def _rows(weight: Tensor) -> Array:
    data = data_of([weight], 0)
    return data.reshape(len(data), -1).astype(np.float64)


def _bias(weight: Tensor, biases: Sequence[Tensor]) -> Array:
    return data_of(biases, 0).astype(np.float64) if biases else np.zeros(weight.shape[0])


def _round(real: Array, bias: Array, s_w: Array, s_x: float, x_zero: int, group: int = 0) -> tuple[Array, Array]:
    """Return rows of weights and biases as integers, with the input's zero point folded in."""
    rows = round_in_groups(real, s_w) if group else np.rint(real / s_w[:, None]).astype(np.int64)
    return rows, np.rint(bias / (s_x * s_w)) - x_zero * rows.sum(axis=1)


def _reachable(biases: Array, weights: Array, s_x: float, s_y: float) -> Array:
    """Return biases limited to where they matter: beyond, the output is at its limit whatever the input is."""
    reach = 255 * s_x * np.abs(weights).sum(axis=1) + 512 * s_y
    return np.clip(biases, -reach, reach)


def weight_scales(scales: Array, weights: Array, biases: Array, s_x: float, s_y: float) -> Array:
    """Return the scales of a layer's rows of weights, such that each bias fits into 32 bits. A row of zeros may have
    any scale; it gets one that leaves its bias ten bits after the point of the output."""
    scales = np.where(weights.any(axis=1), scales, s_y / (s_x * 2**10))
    return np.maximum(scales, np.abs(biases) / (s_x * LARGEST_BIAS))
