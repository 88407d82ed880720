"""softmax and its logarithm, along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Piece, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need_axes, need_float32
from baretorch.ops.helpers.families import AlongAxis
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.scan import axis_fields


@dataclass(frozen=True)
class Softmax(AlongAxis, name="softmax"):
    """x -> e^x divided by its sum along `axis`."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_axes(self, (self.axis,), inputs[0])
        return (Signature(inputs[0].shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        with np.errstate(all="ignore"):
            y = self.value(x - x.max(axis=self.axis, keepdims=True, initial=-np.inf))
            return (np.asarray(y, np.float32),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == self.axis else cut.from_first(self, inputs, axis, start, stop)

    def value(self, x: Array) -> Any:
        """Return the result from x whose largest element is 0."""
        e = np.exp(x)
        return e / e.sum(axis=self.axis, keepdims=True)


@dataclass(frozen=True)
class LogSoftmax(Softmax, name="log_softmax"):
    """x -> x less the logarithm of the sum of e^x along `axis`."""

    def value(self, x: Array) -> Any:
        return x - np.log(np.exp(x).sum(axis=self.axis, keepdims=True))


def _params(call: Call[Any]) -> Params:
    return Params("bt_softmax_f32", axis_fields(call.x.shape, call.op.axis))


def _overlap(call: Call[Any]) -> int | None:
    """Return 0 if rows are contiguous: then they work in place. Interleaved rows do not go forward."""
    return 0 if prod(call.x.shape[call.op.axis + 1 :]) == 1 else None


SOFTMAX: tuple[Kernel[Softmax], ...] = (
    Kernel("bt_softmax_f32_ref", "softmax/ref.c", _params, overlap=overlap.first_only(_overlap), splits=cut.outermost),
)
LOG_SOFTMAX: tuple[Kernel[LogSoftmax], ...] = (
    Kernel(
        "bt_log_softmax_f32_ref", "softmax/ref.c", _params, overlap=overlap.first_only(_overlap), splits=cut.outermost
    ),
)
