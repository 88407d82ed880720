"""Normalisation by the mean and variance of the input itself: layer_norm, rms_norm, group_norm, instance_norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need, need_axes, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.reduce import reduction_loops


@dataclass(frozen=True)
class LayerNorm(Op, name="layer_norm", carried=slice(1)):
    """x, weight, bias -> (x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over `axes`.

    Weight and bias have the shape of these axes, in this order, or a single element. Without `centred` the mean is
    taken to be 0, which makes it an rms_norm."""

    axes: tuple[int, ...]
    eps: float
    centred: bool = True

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        need_float32(self, inputs)
        need_axes(self, self.axes, x)
        _need_places(self, inputs, tuple(x.shape[a] for a in self.axes))
        return (Signature(x.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0]
        rest = tuple(i for i in range(x.ndim) if i not in self.axes)
        order = (*rest, *self.axes)  # the axes last, as weight and bias have them
        y = _normalize(x.transpose(order), len(self.axes), self.eps, self.centred)
        with np.errstate(all="ignore"):
            y = y * _spread(inputs[1]) + _spread(inputs[2])
            return (y.transpose(np.argsort(order)).astype(np.float32),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(replace(self, axes=tuple(dims[a] for a in self.axes)), dims)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis in self.axes else cut.from_first(self, inputs, axis, start, stop)


@dataclass(frozen=True)
class GroupNorm(Op, name="group_norm", carried=slice(1)):
    """x, weight, bias -> (x - mean) / sqrt(variance + eps) * weight + bias, with a mean and a variance for each of
    `groups` parts of the channels, which are along `axis`, and each element of the batch, which is along axis 0.

    Weight and bias have an element per channel or a single one. As many groups as channels are an instance_norm."""

    groups: int
    eps: float
    axis: int = 1

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        need_float32(self, inputs)
        need_axes(self, (0, self.axis), x)
        channels = x.shape[self.axis]
        need(
            self.groups > 0 and channels % self.groups == 0,
            self,
            f"{channels} channels are not {self.groups} equal groups",
            inputs,
            "a number of groups that divides the number of channels",
        )
        _need_places(self, inputs, (channels,))
        return (Signature(x.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = np.moveaxis(inputs[0], self.axis, 1)
        parts = x.reshape(x.shape[0], self.groups, -1)
        column = (-1, *(1,) * (x.ndim - 2))
        y = _normalize(parts, 1, self.eps, centred=True).reshape(x.shape)
        with np.errstate(all="ignore"):
            y = y * inputs[1].reshape(column) + inputs[2].reshape(column)
            return (np.moveaxis(y, 1, self.axis).astype(np.float32),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(replace(self, axis=dims[self.axis]), dims) if dims[0] == 0 else None

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis else cut.from_first(self, inputs, axis, start, stop)


def _need_places(op: Op, inputs: Sequence[Tensor], places: Shape) -> None:
    need(
        len(inputs) == 3 and all(t.shape == places or t.count == 1 for t in inputs[1:]),
        op,
        "weight and bias do not have the shape of the normalised axes",
        inputs,
        f"weight and bias of shape {list(places)}, or of a single element",
    )


def _spread(t: Array) -> Array:
    """Return a single element as a scalar, so that its own dimensions do not count."""
    return t.reshape(()) if t.size == 1 else t


def _normalize(x: Array, last: int, eps: float, centred: bool) -> Array:
    """Return x in float64, normalised over the `last` last axes."""
    axes = tuple(range(x.ndim - last, x.ndim))
    x = x.astype(np.float64)
    with np.errstate(all="ignore"):
        count = np.float64(prod(x.shape[a] for a in axes))
        if centred:
            x = x - x.sum(axis=axes, keepdims=True) / count
        return np.asarray(x / np.sqrt((x * x).sum(axis=axes, keepdims=True) / count + eps))


Loops = tuple[tuple[str, Shape], ...] | None


def _layer_loops(call: Call[LayerNorm]) -> Loops:
    shape, axes = call.x.shape, call.op.axes
    sizes = [shape[a] for a in axes]
    place = [0] * len(shape)
    for i, axis in enumerate(axes):
        place[axis] = prod(sizes[i + 1 :])
    return reduction_loops(shape, axes, place)


def _group_loops(call: Call[GroupNorm]) -> Loops:
    """Return the loops with the channels as two dimensions, groups and channels of a group."""
    axis, groups = call.op.axis, call.op.groups
    each = call.x.shape[axis] // groups
    shape = (*call.x.shape[:axis], groups, each, *call.x.shape[axis + 1 :])
    place = [0] * len(shape)
    place[axis : axis + 2] = (each, 1)
    return reduction_loops(shape, [i for i in range(len(shape)) if i not in (0, axis)], place)


def _params(call: Call[Any], loops: Loops, centred: bool) -> Params:
    assert loops is not None, "`fits` was not asked"
    weight, bias = call.inputs[1:]
    rest = (("weights", int(weight.count > 1)), ("biases", int(bias.count > 1)), ("centred", int(centred)))
    return Params("bt_norm_f32", (*loops, *rest, ("eps", call.op.eps)))


def _layer_overlap(call: Call[LayerNorm]) -> int | None:
    """Return 0 if what is normalised together is contiguous: then it works in place."""
    rank = len(call.x.shape)
    return 0 if sorted(call.op.axes) == list(range(rank - len(call.op.axes), rank)) else None


LAYER_NORM: tuple[Kernel[LayerNorm], ...] = (
    Kernel(
        "bt_norm_f32_ref",
        "norm/ref.c",
        lambda call: _params(call, _layer_loops(call), call.op.centred),
        fits=lambda call: _layer_loops(call) is not None,
        overlap=overlap.first_only(_layer_overlap),
        splits=cut.outermost,
    ),
)
GROUP_NORM: tuple[Kernel[GroupNorm], ...] = (
    Kernel(
        "bt_norm_f32_ref",
        "norm/ref.c",
        lambda call: _params(call, _group_loops(call), True),
        fits=lambda call: _group_loops(call) is not None,
        splits=cut.outermost,
    ),
)
