"""Operators along one axis that look at its elements in order: argmax, argmin, cumsum, topk (and so sort), kth_value,
median, mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.families import AlongAxis
from baretorch.ops.helpers.kernel import Call, Kernel, Literal, Params
from baretorch.ops.reduce import (
    FLOAT_TYPES,
    NUMBER_TYPES,
    SUFFIXES,
    SUMS,
    Types,
    drop_axes,
    need_elements,
    need_type,
    reduce_shape,
)


@dataclass(frozen=True)
class ArgMax(Op, name="argmax"):
    """Where along `axis` the largest element is, the first of equal ones. NaN counts as largest."""

    types: ClassVar[Types] = dict.fromkeys(NUMBER_TYPES, DType.INT64)
    axis: int
    keepdim: bool

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, self.types, x)
        need_axes(self, (self.axis,), x)
        need_elements(self, (self.axis,), x)
        return (Signature(reduce_shape(x.shape, (self.axis,), self.keepdim), DType.INT64),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.argmax(inputs[0], axis=self.axis, keepdims=self.keepdim),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        op = replace(self, axis=dims[self.axis])
        return Permuted(op, dims if self.keepdim else drop_axes(dims, (self.axis,)))


@dataclass(frozen=True)
class ArgMin(ArgMax, name="argmin"):
    """Where along `axis` the smallest element is, the first of equal ones. NaN counts as smallest."""

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.argmin(inputs[0], axis=self.axis, keepdims=self.keepdim),)


@dataclass(frozen=True)
class CumSum(AlongAxis, name="cumsum"):
    """The sum of the elements so far along `axis`; integers and truth values are counted in int64."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, SUMS, x)
        need_axes(self, (self.axis,), x)
        return (Signature(x.shape, SUMS[x.dtype]),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        if x.dtype != np.float32:
            return (np.cumsum(x, axis=self.axis, dtype=np.int64),)
        with np.errstate(all="ignore"):
            return (np.cumsum(x, axis=self.axis, dtype=np.float64).astype(np.float32),)


@dataclass(frozen=True)
class TopK(AlongAxis, name="topk"):
    """The k largest or smallest elements along `axis`, in order, and where they were. Equal elements keep their order,
    and NaN counts as largest; so all elements are a stable sort."""

    k: int
    axis: int
    largest: bool = True

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, FLOAT_TYPES, x)
        need_axes(self, (self.axis,), x)
        length = x.shape[self.axis]
        need(0 <= self.k <= length, self, f"{self.k} of {length} elements are requested", inputs, f"k up to {length}")
        shape: Shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return (Signature(shape, DType.FLOAT32), Signature(shape, DType.INT64))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        if self.largest:  # the end of a stable sort of the flipped row is the first of the largest
            backwards = np.argsort(np.flip(x, self.axis), axis=self.axis, kind="stable")
            order = x.shape[self.axis] - 1 - np.flip(backwards, self.axis)
        else:
            order = np.argsort(x, axis=self.axis, kind="stable")
        indices = np.take(order, np.arange(self.k), axis=self.axis)
        return np.take_along_axis(x, indices, self.axis), indices.astype(np.int64)


def axis_fields(shape: Shape, axis: int) -> tuple[tuple[str, Literal], ...]:
    """Return the number of elements before, along and after an axis, as fields of a parameter struct."""
    return (("outer", prod(shape[:axis])), ("length", shape[axis]), ("inner", prod(shape[axis + 1 :])))


def _params(call: Call[Any]) -> Params:
    return Params("bt_scan", axis_fields(call.x.shape, call.op.axis))


def _topk_params(call: Call[TopK]) -> Params:
    op = call.op
    return Params("bt_topk_f32", (*axis_fields(call.x.shape, op.axis), ("k", op.k), ("largest", int(op.largest))))


def _kernels(op: type[Op], types: Types) -> tuple[Kernel[Any], ...]:
    def kernel(dtype: DType) -> Kernel[Any]:
        symbol = f"bt_{op.name}_{SUFFIXES[dtype]}_ref"
        return Kernel(symbol, "scan/ref.c", _params, fits=lambda call: call.x.dtype is dtype)

    return tuple(map(kernel, types))


ARGMAX = _kernels(ArgMax, ArgMax.types)
ARGMIN = _kernels(ArgMin, ArgMin.types)
CUMSUM = _kernels(CumSum, SUMS)
TOPK: tuple[Kernel[TopK], ...] = (Kernel("bt_topk_f32_ref", "scan/ref.c", _topk_params),)


@dataclass(frozen=True)
class Chosen(Op):
    """The value and index of one element along the axis, which is removed."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, NUMBER_TYPES, x)
        need_axes(self, (self.axis,), x)
        need_elements(self, (self.axis,), x)
        shape = reduce_shape(x.shape, (self.axis,), False)
        return Signature(shape, x.dtype), Signature(shape, DType.INT64)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        at = np.apply_along_axis(self.place, self.axis, x)
        values = np.take_along_axis(x, np.expand_dims(at, self.axis), self.axis)
        return values.reshape(at.shape), at.astype(np.int64)

    def place(self, row: Array) -> int:
        """Return where in a row the chosen element is."""
        raise NotImplementedError

    def params(self, call: Call[Any]) -> Params:
        raise NotImplementedError


@dataclass(frozen=True)
class KthValue(Chosen, name="kth_value"):
    """The element at place k, from 0, of the row in ascending order; equal elements keep their order, NaN comes
    last."""

    k: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        made = super().infer(inputs)
        length = inputs[0].shape[self.axis]
        need(0 <= self.k < length, self, f"place {self.k} is not in the row", inputs, f"a place from 0 to {length - 1}")
        return made

    def place(self, row: Array) -> int:
        return int(np.argsort(row, kind="stable")[self.k])

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_kth", (*axis_fields(call.x.shape, self.axis), ("k", self.k), ("quiet", 0)))


@dataclass(frozen=True)
class Median(Chosen, name="median"):
    """The element in the middle of the row in order, the lower of two. The first NaN if there is one; with `quiet`, NaN
    does not count, unless there is nothing else."""

    quiet: bool = False

    def place(self, row: Array) -> int:
        numbers = int(np.sum(row == row))
        middle = max(numbers - 1, 0) // 2
        return int(np.argsort(row, kind="stable")[middle if self.quiet or numbers == row.size else numbers])

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_kth", (*axis_fields(call.x.shape, self.axis), ("k", -1), ("quiet", int(self.quiet))))


@dataclass(frozen=True)
class Mode(Chosen, name="mode"):
    """The most frequent value of the row, the least of several, at its last place. NaN equals nothing."""

    def place(self, row: Array) -> int:
        times = np.sum(row[:, None] == row[None, :], axis=1)
        best = np.min(row[times == times.max()]) if times.max() else row[0]
        return int(np.flatnonzero(row == best)[-1]) if times.max() else 0

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_mode", axis_fields(call.x.shape, self.axis))


def _kernels_in_order(stem: str) -> tuple[Kernel[Any], ...]:
    def kernel(dtype: DType) -> Kernel[Any]:
        return Kernel(
            f"bt_{stem}_{SUFFIXES[dtype]}_ref",
            "ordered/ref.c",
            lambda call: call.op.params(call),
            fits=lambda call: call.x.dtype is dtype,
        )

    return tuple(map(kernel, NUMBER_TYPES))


KTH_VALUE = _kernels_in_order("kth_value")
MEDIAN = KTH_VALUE
MODE = _kernels_in_order("mode")
