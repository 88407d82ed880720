"""One element of each row along an axis, chosen by the order of the values: kth_value, median, mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.reduce import NUMBERS, SUFFIXES, need_elements, need_type, reduced
from baretorch.ops.scan import axis_fields


@dataclass(frozen=True)
class Chosen(Op):
    """Values and indices; the axis is gone."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, NUMBERS, x)
        need_axes(self, (self.axis,), x)
        need_elements(self, (self.axis,), x)
        shape = reduced(x.shape, (self.axis,), False)
        return Signature(shape, x.dtype), Signature(shape, DType.INT64)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        at = np.apply_along_axis(self.place, self.axis, x)
        values = np.take_along_axis(x, np.expand_dims(at, self.axis), self.axis)
        return values.reshape(at.shape), at.astype(np.int64)

    def place(self, row: Array) -> int:
        """Where in a row the chosen element is."""
        raise NotImplementedError

    def params(self, call: Call[Any]) -> Params:
        raise NotImplementedError


@dataclass(frozen=True)
class KthValue(Chosen, name="kth_value"):
    """The element at place k, from 0, of the row in ascending order; equal elements keep theirs, NaN comes last."""

    k: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        made = super().infer(inputs)
        length = inputs[0].shape[self.axis]
        need(0 <= self.k < length, self, f"there is no place {self.k}", inputs, f"a place from 0 to {length - 1}")
        return made

    def place(self, row: Array) -> int:
        return int(np.argsort(row, kind="stable")[self.k])

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_kth", (*axis_fields(call.x.shape, self.axis), ("k", self.k), ("quiet", 0)))


@dataclass(frozen=True)
class Median(Chosen, name="median"):
    """The element in the middle of the row in order, of two the lower. The first NaN if there is one; with `quiet`, NaN
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
    """The value that the row has most often, of several the least, at its last place. NaN equals nothing."""

    def place(self, row: Array) -> int:
        times = np.sum(row[:, None] == row[None, :], axis=1)
        best = np.min(row[times == times.max()]) if times.max() else row[0]
        return int(np.flatnonzero(row == best)[-1]) if times.max() else 0

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_mode", axis_fields(call.x.shape, self.axis))


def _kernels(stem: str) -> tuple[Kernel[Any], ...]:
    def kernel(dtype: DType) -> Kernel[Any]:
        return Kernel(
            f"bt_{stem}_{SUFFIXES[dtype]}_ref",
            "ordered/ref.c",
            lambda call: call.op.params(call),
            fits=lambda call: call.x.dtype is dtype,
        )

    return tuple(map(kernel, NUMBERS))


KTH_VALUE = _kernels("kth_value")
MEDIAN = KTH_VALUE
MODE = _kernels("mode")
