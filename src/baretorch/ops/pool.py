"""Pooling on NHWC with PyTorch's exact rules for padding, ceil_mode and divisors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of
from baretorch.ops.helpers.window import Axis, Padding, Pair, axes, cut_windows, image_params, outputs, pair_params
from baretorch.ops.int8 import qpool
from baretorch.targets.features import FPU


def _infer(op: MaxPool2d | AvgPool2d, windows: tuple[Axis, Axis], inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
    (x,) = inputs
    if x.dtype is not DType.INT8 or isinstance(op, AvgPool2d):
        need_float32(op, inputs)
    need(len(x.shape) == 4, op, "the input must have four dimensions", inputs, "x[N, H, W, C]")
    valid = all(min(a.kernel, a.stride, a.dilation) > 0 for a in windows)
    need(valid, op, "a window without size or stride", inputs, "kernel, stride and dilation of 1 or more")
    need(min(op.padding) >= 0, op, f"padding {op.padding} is negative", inputs, "padding of 0 or more")
    h, w = outputs(x.shape, windows)
    need(h > 0 and w > 0, op, "the output is empty", inputs, f"an image that holds the kernel {op.kernel}")
    return (Signature((x.shape[0], h, w, x.shape[3]), x.dtype, x.quant),)


def _places(x: Array, windows: tuple[Axis, Axis]) -> Iterator[tuple[int, int, int, int]]:
    """Yield each output position, and where its window starts in the input."""
    h, w = outputs(x.shape, windows)
    for i in range(h):
        for j in range(w):
            yield i, j, i * windows[0].stride - windows[0].before, j * windows[1].stride - windows[1].before


@dataclass(frozen=True)
class MaxPool2d(Op, name="max_pool2d"):
    """The maximum of each window, float32 or int8; padding counts as -inf, NaN wins."""

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    ceil_mode: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return _infer(self, self._windows(), inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        least = -128 if x.dtype == np.int8 else -np.inf
        y = np.full((x.shape[0], *outputs(x.shape, self._windows()), x.shape[3]), least, x.dtype)
        for i, j, top, left in _places(x, self._windows()):
            for row in range(top, top + self.kernel[0] * self.dilation[0], self.dilation[0]):
                for column in range(left, left + self.kernel[1] * self.dilation[1], self.dilation[1]):
                    if 0 <= row < x.shape[1] and 0 <= column < x.shape[2]:
                        y[:, i, j] = np.maximum(y[:, i, j], x[:, row, column])
        return (y,)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        op = self._without_ceil_mode(inputs[0].shape) if self.ceil_mode else self
        return cut_windows(op, op._windows(), inputs, axis, start, stop)

    def _without_ceil_mode(self, x: Shape) -> MaxPool2d:
        """Return the same pool of x[N, H, W, C] with padding as far as its windows reach."""
        after = [
            max(0, (w.outputs(size) - 1) * w.stride + w.reach - w.before - size)
            for w, size in zip(self._windows(), x[1:3], strict=True)
        ]
        padding = (self.padding[0], after[0], self.padding[2], after[1])
        return replace(self, padding=padding, ceil_mode=False)

    def _windows(self) -> tuple[Axis, Axis]:
        return axes(self.kernel, self.stride, self.padding, self.dilation, self.ceil_mode)


@dataclass(frozen=True)
class AvgPool2d(Op, name="avg_pool2d"):
    """The sum of each window divided by `divisor`, or if that is 0 by the window's size, with or without padding.

    A window that reaches beyond the padding (in `ceil_mode`) is cut off there; one without any input gives 0.
    """

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor: int = 0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return _infer(self, self._windows(), inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        height, width = x.shape[1:3]
        _, below, _, right = self.padding
        y = np.zeros((x.shape[0], *outputs(x.shape, self._windows()), x.shape[3]), np.float32)
        for i, j, top, left in _places(x, self._windows()):
            bottom, end = min(top + self.kernel[0], height + below), min(left + self.kernel[1], width + right)
            part = x[:, max(top, 0) : max(bottom, 0), max(left, 0) : max(end, 0)].astype(np.float64)
            inside = part.shape[1] * part.shape[2]
            if inside:
                count = self.divisor or ((bottom - top) * (end - left) if self.count_include_pad else inside)
                with np.errstate(all="ignore"):
                    y[:, i, j] = part.sum(axis=(1, 2)) / count
        return (y,)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut_windows(self, self._windows(), inputs, axis, start, stop)

    def _windows(self) -> tuple[Axis, Axis]:
        return axes(self.kernel, self.stride, self.padding, ceil_mode=self.ceil_mode)


@dataclass(frozen=True)
class AdaptiveMaxPool2d(Op, name="adaptive_max_pool2d"):
    """The maximum of each of size[0] x size[1] windows that cover the image; NaN wins.

    Window i of n along a side of s begins at floor(i * s / n) and ends before ceil((i + 1) * s / n): windows may differ
    in size by one and share a row. Where all are equal and share nothing, it is a plain pool.
    """

    size: Pair

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return _infer_adaptive(self, inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (_pool_adaptively(inputs[0], self.size, lambda part: part.max(axis=(1, 2))),)


@dataclass(frozen=True)
class AdaptiveAvgPool2d(Op, name="adaptive_avg_pool2d"):
    """The average of each of size[0] x size[1] windows that cover the image, as those of adaptive_max_pool2d."""

    size: Pair

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return _infer_adaptive(self, inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (_pool_adaptively(inputs[0], self.size, lambda part: part.mean(axis=(1, 2), dtype=np.float64)),)


def _infer_adaptive(op: AdaptiveMaxPool2d | AdaptiveAvgPool2d, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
    need_float32(op, inputs)
    (x,) = inputs
    need(len(x.shape) == 4, op, "the input must have four dimensions", inputs, "x[N, H, W, C]")
    need(min(*x.shape[1:3], *op.size) > 0, op, f"output size {op.size}", inputs, "an image and a size of 1 or more")
    return (Signature((x.shape[0], *op.size, x.shape[3]), DType.FLOAT32),)


def _pool_adaptively(x: Array, size: Pair, pool: Callable[[Array], Array]) -> Array:
    y = np.empty((x.shape[0], *size, x.shape[3]), np.float32)
    rows, columns = (
        [slice(i * s // n, -(-(i + 1) * s // n)) for i in range(n)] for s, n in zip(x.shape[1:3], size, strict=True)
    )
    with np.errstate(all="ignore"):
        for i, j in product(range(size[0]), range(size[1])):
            y[:, i, j] = pool(x[:, rows[i], columns[j]])
    return y


def _max_params(call: Call[MaxPool2d]) -> Params:
    return Params("bt_max_pool2d_f32", (*qpool.window_fields(call), *pair_params("dilation", call.op.dilation)))


def _avg_params(call: Call[AvgPool2d]) -> Params:
    padding = zip(("pad_top", "pad_bottom", "pad_left", "pad_right"), call.op.padding, strict=True)
    own = fields_of(call.op, "count_include_pad", "divisor")
    return Params("bt_avg_pool2d_f32", (*qpool.pool_params(call), *padding, *own))


def _adaptive_params(call: Call[AdaptiveMaxPool2d] | Call[AdaptiveAvgPool2d]) -> Params:
    return Params("bt_adaptive_pool2d_f32", image_params(call.x.shape, call.y.shape))


MAX: tuple[Kernel[MaxPool2d], ...] = (
    *qpool.MAX,
    Kernel(
        "bt_max_pool2d_f32_ref",
        "pool/ref.c",
        _max_params,
        fits=lambda call: call.x.dtype is DType.FLOAT32,
        overlap=qpool.TRAILING,
        splits=cut.rows,
    ),
)
_AVG = Kernel[AvgPool2d]("bt_avg_pool2d_f32_ref", "pool/ref.c", _avg_params, overlap=qpool.TRAILING, splits=cut.rows)
AVG = (
    _AVG.for_cpu("fpu", FPU, fits=lambda call: call.op.padding == (0, 0, 0, 0) and not call.op.ceil_mode),
    _AVG,
)
ADAPTIVE_MAX: tuple[Kernel[AdaptiveMaxPool2d], ...] = (
    Kernel("bt_adaptive_max_pool2d_f32_ref", "pool/ref.c", _adaptive_params),
)
ADAPTIVE_AVG: tuple[Kernel[AdaptiveAvgPool2d], ...] = (
    Kernel("bt_adaptive_avg_pool2d_f32_ref", "pool/ref.c", _adaptive_params),
)
