"""qavg_pool2d: averages of int8 images; the int8 kernels of max_pool2d; qavg_pool16 and qmax_pool16 for int16.

A mean over neighbouring axes is such a pool too: of an image [outer, axes, 1, inner] with one window for all of the
second dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Piece, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Params, fields_of, with_pitch
from baretorch.ops.helpers.window import (
    Axis,
    Padding,
    Pair,
    axes,
    cut_windows,
    image_params,
    outputs,
    padding_params,
    pair_params,
)
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST, requantize
from baretorch.targets.features import DSP, MVE, XCV


class QPool(Op):
    """An operator that pools an image of its `dtype`."""

    dtype: ClassVar[DType] = DType.INT8
    kernel: Pair
    stride: Pair
    padding: Padding

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,), label = inputs, self.dtype.label
        valid = x.dtype is self.dtype and len(x.shape) == 4
        need(valid, self, f"the input is not an {label} image", inputs, f"{label}[N, H, W, C]")
        h, w = outputs(x.shape, self._windows())
        need(h > 0 and w > 0, self, "the output is empty", inputs, f"an image that holds the kernel {self.kernel}")
        return (Signature((x.shape[0], h, w, x.shape[3]), self.dtype),)

    def places(self, x: Array, outside: int) -> Array:
        """Return all elements of a window along a new first axis, with padding that has this value."""
        top, bottom, left, right = self.padding
        padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=outside)
        (h, w), (down, right) = outputs(x.shape, self._windows()), self.stride
        rows, columns = range(self.kernel[0]), range(self.kernel[1])
        return np.stack([padded[:, i::down, j::right][:, :h, :w] for i in rows for j in columns])

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut_windows(self, self._windows(), inputs, axis, start, stop)

    def _windows(self) -> tuple[Axis, Axis]:
        return axes(self.kernel, self.stride, self.padding)


@dataclass(frozen=True)
class QAvgPool2d(QPool, name="qavg_pool2d"):
    """x int8[N, H, W, C] -> the sum of x - x_zero over each window, requantized. Padding adds nothing."""

    kernel: Pair
    stride: Pair
    x_zero: int
    multiplier: int
    shift: int
    zero: int
    padding: Padding = (0, 0, 0, 0)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        acc = self.places(inputs[0].astype(np.int64) - self.x_zero, 0).sum(axis=0)
        return (requantize(acc, np.array(self.multiplier), self.shift, self.zero, -128, 127),)


@dataclass(frozen=True)
class QMaxPool16(QPool, name="qmax_pool16", dtype=DType.INT16):
    """x int16[N, H, W, C] -> the largest of each window."""

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (self.places(inputs[0], LOWEST).max(axis=0),)


@dataclass(frozen=True)
class QAvgPool16(QPool, name="qavg_pool16", dtype=DType.INT16):
    """x int16[N, H, W, C] -> the sum over each window, requantized. Padding adds nothing."""

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)
    multiplier: int = 1 << 30
    shift: int = 0

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        acc = self.places(inputs[0].astype(np.int64), 0).sum(axis=0) << self.shift
        return (np.clip((acc * self.multiplier + (1 << 31)) >> 32, LOWEST, HIGHEST).astype(np.int16),)


def _params(call: Call[QAvgPool2d]) -> Params:
    own = fields_of(call.op, "x_zero", "multiplier", "shift", "zero")
    params = Params("bt_qavg_pool2d", (*window_fields(call), *own))
    return with_pitch("bt_qavg_pool2d_channels", params, call)


def _params16(call: Call[QAvgPool16]) -> Params:
    own = fields_of(call.op, "multiplier", "shift")
    return Params("bt_qavg_pool2d", (*window_fields(call), ("x_zero", 0), *own, ("zero", 0)))


def pool_params(call: Call[Any]) -> Fields:
    """Return the parameters that all pools have: sizes, kernel and stride."""
    windows = (*pair_params("kernel", call.op.kernel), *pair_params("stride", call.op.stride))
    return (*image_params(call.x.shape, call.y.shape), *windows)


def window_fields(call: Call[Any]) -> Fields:
    """Return the first fields of a struct that begins as bt_qavg_pool2d does."""
    return (*pool_params(call), *padding_params(call.op.padding))


def _max_params(call: Call[Any]) -> Params:
    return with_pitch("bt_qmax_pool2d_channels", Params("bt_qmax_pool2d", window_fields(call)), call)


def _halfwords(call: Call[Any]) -> bool:
    """Return whether sums of a window fit into halfwords."""
    return bool(call.op.kernel[0] * call.op.kernel[1] <= 256)


def _fours(call: Call[Any]) -> bool:
    return call.x.shape[3] >= 4


def _max(call: Call[Any]) -> bool:
    return call.x.dtype is DType.INT8 and call.op.dilation == (1, 1)


# A channel is made from that channel alone, and channels go in order.
TRAILING = overlap.windows(lambda op: op.stride, lambda op: op.padding, together=0)
_AVG = Kernel[QAvgPool2d]("bt_qavg_pool2d_ref", "qpool/ref.c", _params, overlap=TRAILING, splits=cut.rows)
_MAX = Kernel[Any]("bt_qmax_pool2d_ref", "qpool/ref.c", _max_params, fits=_max, overlap=TRAILING, splits=cut.rows)
_CHANNELS = cut.rows_and_own_channels(4)
AVG = (
    _AVG.for_cpu("mve", MVE, fits=_halfwords),
    _AVG.for_cpu("dsp", DSP, fits=lambda call: _halfwords(call) and _fours(call)),
    _AVG.for_cpu("xcv", XCV, fits=_fours, splits=_CHANNELS, channels="bt_qavg_pool2d_channels_xcv"),
    _AVG,
)
# Kernels of pool.MaxPool2d, whose output consists of the input's own values.
MAX = (
    _MAX.for_cpu("mve", MVE),
    _MAX.for_cpu("dsp", DSP, fits=lambda call: _max(call) and _fours(call)),
    _MAX.for_cpu(
        "xcv",
        XCV,
        fits=lambda call: _max(call) and _fours(call),
        splits=_CHANNELS,
        channels="bt_qmax_pool2d_channels_xcv",
    ),
    _MAX,
)


def _kernels16(name: str, params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    ref = Kernel[Any](f"bt_{name}_ref", "qwide/ref.c", params, splits=cut.rows)
    dsp = ref.for_cpu("dsp", DSP, fits=lambda call: call.x.shape[3] >= 2)
    return (ref.for_cpu("mve", MVE), replace(dsp, source="qwide/pool_dsp.c"), ref)


MAX16 = _kernels16("qmax_pool16", _max_params)
AVG16 = _kernels16("qavg_pool16", _params16)
