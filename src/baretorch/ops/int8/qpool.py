"""qavg_pool2d: averages of int8 images; and the int8 kernels of max_pool2d.

A mean over neighbouring axes is such a pool too: of an image [outer, axes, 1, inner] with one window for all of the
second dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
from baretorch.ops.int8.arithmetic import requantize
from baretorch.targets.features import DSP, MVE, XCV


@dataclass(frozen=True)
class QAvgPool2d(Op, name="qavg_pool2d"):
    """x int8[N, H, W, C] -> the sum of x - x_zero over each window, requantized. Padding adds nothing."""

    kernel: Pair
    stride: Pair
    x_zero: int
    multiplier: int
    shift: int
    zero: int
    padding: Padding = (0, 0, 0, 0)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        valid = x.dtype is DType.INT8 and len(x.shape) == 4
        need(valid, self, "the input is not an int8 image", inputs, "int8[N, H, W, C]")
        h, w = outputs(x.shape, self._windows())
        need(h > 0 and w > 0, self, "the output is empty", inputs, f"an image that holds the kernel {self.kernel}")
        return (Signature((x.shape[0], h, w, x.shape[3]), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64) - self.x_zero
        top, bottom, left, right = self.padding
        padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
        h, w = outputs(x.shape, self._windows())
        acc = np.zeros((x.shape[0], h, w, x.shape[3]), np.int64)
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                acc += padded[:, i :: self.stride[0], j :: self.stride[1]][:, :h, :w]
        return (requantize(acc, np.array(self.multiplier), self.shift, self.zero, -128, 127),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut_windows(self, self._windows(), inputs, axis, start, stop)

    def _windows(self) -> tuple[Axis, Axis]:
        return axes(self.kernel, self.stride, self.padding)


def _params(call: Call[QAvgPool2d]) -> Params:
    own = fields_of(call.op, "x_zero", "multiplier", "shift", "zero")
    params = Params("bt_qavg_pool2d", (*window_fields(call), *own))
    return with_pitch("bt_qavg_pool2d_channels", params, call)


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
