"""qavg_windows and qmax_windows: int8 pools whose windows differ in size, as adaptive pools and those at a border have
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.arithmetic import requantize
from baretorch.ops.check import need
from baretorch.ops.kernel import Call, Kernel, Packed, Params, data_of

Spans = tuple[tuple[int, int], ...]  # first and behind the last, of each window along a side


@dataclass(frozen=True)
class QMaxWindows(Op):
    """x int8[N, H, W, C] -> the largest of the windows rows[i] x columns[j]."""

    name: ClassVar[str] = "qmax_windows"
    rows: Spans
    columns: Spans

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return (Signature(_shape(self, inputs), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        pooled = [x[:, a:b, c:d].max(axis=(1, 2)) for a, b in self.rows for c, d in self.columns]
        return (np.stack(pooled, 1).reshape(len(x), len(self.rows), len(self.columns), -1),)


@dataclass(frozen=True)
class QAvgWindows(Op):
    """x int8[N, H, W, C], multiplier int32[len(rows), len(columns)] -> the sum of x - x_zero over the windows rows[i] x
    columns[j], requantized."""

    name: ClassVar[str] = "qavg_windows"
    rows: Spans
    columns: Spans
    x_zero: int
    shift: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        shape = _shape(self, inputs)
        multiplier = inputs[1]
        need(
            (multiplier.dtype, multiplier.shape) == (DType.INT32, shape[1:3]),
            self,
            "the multipliers do not fit",
            inputs,
            f"int32{list(shape[1:3])}",
        )
        return (Signature(shape, DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, multiplier = inputs[0].astype(np.int64) - self.x_zero, inputs[1]
        sums = [x[:, a:b, c:d].sum(axis=(1, 2)) for a, b in self.rows for c, d in self.columns]
        acc = np.stack(sums, 1).reshape(len(x), *multiplier.shape, -1)
        return (requantize(acc, multiplier[..., np.newaxis], self.shift, self.zero, -128, 127),)


def _shape(op: QMaxWindows | QAvgWindows, inputs: Sequence[Tensor]) -> Shape:
    x = inputs[0]
    need(x.dtype is DType.INT8 and len(x.shape) == 4, op, "the input is no int8 image", inputs, "int8[N, H, W, C]")
    for spans, size in zip((op.rows, op.columns), x.shape[1:3], strict=True):
        inside = all(0 <= start < stop <= size for start, stop in spans)
        need(inside, op, "a window is empty or leaves the image", inputs, "windows inside of the image")
    return (x.shape[0], len(op.rows), len(op.columns), x.shape[3])


def _sizes(call: Call[Any]) -> tuple[tuple[str, int], ...]:
    batch, in_h, in_w, channels = call.x.shape
    sizes = {"batch": batch, "in_h": in_h, "in_w": in_w, "channels": channels}
    return (*sizes.items(), ("out_h", len(call.op.rows)), ("out_w", len(call.op.columns)))


def _params(call: Call[QAvgWindows]) -> Params:
    op = call.op
    return Params("bt_qavg_windows", (*_sizes(call), ("x_zero", op.x_zero), ("shift", op.shift), ("zero", op.zero)))


def _spans(call: Call[Any]) -> tuple[Packed, ...]:
    return (
        Packed("rows", np.array(call.op.rows, np.int16)),
        Packed("columns", np.array(call.op.columns, np.int16)),
    )


def _pack(call: Call[QAvgWindows]) -> tuple[Packed, ...]:
    return (*_spans(call), Packed("multiplier", data_of(call.inputs, 1)))


AVG: tuple[Kernel[QAvgWindows], ...] = (
    Kernel(
        "bt_qavg_windows_ref",
        "qwindows/ref.c",
        _params,
        fits=lambda call: call.inputs[1].data is not None,
        pack=_pack,
    ),
)
MAX: tuple[Kernel[QMaxWindows], ...] = (
    Kernel(
        "bt_qmax_windows_ref",
        "qwindows/ref.c",
        lambda call: Params("bt_qmax_windows", _sizes(call)),
        pack=_spans,
    ),
)
