"""Resampling of NHWC images: nearest neighbour and bilinear.

Which inputs an output takes, and how much of each, is computed here, in PyTorch's float32 arithmetic, and stored as
tables of a row and a column: a device copies or mixes, and computes no coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params
from baretorch.ops.helpers.window import Pair, image_params

LARGEST = 1 << 15  # of an image's height and width: tables hold int16


@dataclass(frozen=True)
class Resampled(Op):
    """Images of another size; per output, `step` inputs are passed each way."""

    size: Pair
    step: tuple[float, float]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(len(x.shape) == 4, self, "the input must have four dimensions", inputs, "x[N, H, W, C]")
        need(
            min(*x.shape[1:3], *self.size) > 0 and max(*x.shape[1:3], *self.size) < LARGEST,
            self,
            f"from {x.shape[1]} x {x.shape[2]} to {self.size[0]} x {self.size[1]} is not possible",
            inputs,
            f"heights and widths from 1 to {LARGEST - 1}",
        )
        need(min(self.step) >= 0, self, f"step {self.step} is negative", inputs, "a positive scale_factor")
        return (Signature((x.shape[0], *self.size, x.shape[3]), x.dtype),)


@dataclass(frozen=True)
class UpsampleNearest2d(Resampled, name="upsample_nearest2d", computes=False):
    """Output i takes input floor(i * step), or floor((i + 0.5) * step) if `exact`; any type of element."""

    exact: bool = False

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        rows, columns = (self.sources(axis, x.shape[1 + axis]) for axis in (0, 1))
        return (x[:, rows][:, :, columns],)

    def sources(self, axis: int, size: int) -> Array:
        """The input that each output along the height (0) or width (1) takes."""
        at = (np.arange(self.size[axis], dtype=np.float32) + np.float32(0.5 * self.exact)) * np.float32(self.step[axis])
        return np.asarray(np.minimum(np.floor(at), size - 1), np.int16)


@dataclass(frozen=True)
class UpsampleBilinear2d(Resampled, name="upsample_bilinear2d"):
    """Output i lies at (i + 0.5) * step - 0.5 of the input, or i * step if `align_corners`, between two inputs each
    way. An axis that keeps its size is not resampled. As in PyTorch, an infinity that counts for 0 gives NaN."""

    align_corners: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        return super().infer(inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        rows, down = self.sources(0, x.shape[1])
        columns, right = self.sources(1, x.shape[2])
        with np.errstate(all="ignore"):
            between = _mixed(x, columns, right[:, np.newaxis], 2)
            return (_mixed(between, rows, down[:, np.newaxis, np.newaxis], 1).astype(np.float32),)

    def sources(self, axis: int, size: int) -> tuple[Array, Array]:
        """For each output along the height (0) or width (1): the first of two inputs, and how much the next counts."""
        index = np.arange(self.size[axis], dtype=np.float32)
        if self.size[axis] == size:
            return index.astype(np.int16), np.zeros_like(index)
        step = np.float32(self.step[axis])
        at = index * step if self.align_corners else (index + np.float32(0.5)) * step - np.float32(0.5)
        first = np.minimum(np.floor(np.maximum(at, 0)), size - 1)
        return first.astype(np.int16), np.clip(np.maximum(at, 0) - first, 0, 1).astype(np.float32)


def _mixed(x: Array, first: Array, share: Array, axis: int) -> Array:
    """Between x at `first` and the one after, along an axis; the last has none after it and stands in itself."""
    after = np.minimum(first + 1, x.shape[axis] - 1) if len(first) != x.shape[axis] else first
    here, there = x.take(first, axis), x.take(after, axis)
    return np.asarray((np.float32(1) - share) * here + share * there)


def _nearest_params(call: Call[UpsampleNearest2d]) -> Params:
    batch, in_h, in_w, channels = call.x.shape
    out_h, out_w = call.op.size
    sizes = {"batch": batch, "in_h": in_h, "in_w": in_w, "pixel": channels * call.x.dtype.size}
    return Params("bt_upsample_nearest2d", (*sizes.items(), ("out_h", out_h), ("out_w", out_w)))


def _nearest_tables(call: Call[UpsampleNearest2d]) -> tuple[Packed, ...]:
    return tuple(Packed(role, call.op.sources(a, call.x.shape[1 + a])) for a, role in enumerate(("rows", "columns")))


def bilinear_tables(call: Call[Any]) -> tuple[Packed, ...]:
    """Return the inputs of each row and column, and their shares, in float or in integers."""
    rows, down = call.op.sources(0, call.x.shape[1])
    columns, right = call.op.sources(1, call.x.shape[2])
    return (Packed("rows", rows), Packed("down", down), Packed("columns", columns), Packed("right", right))


NEAREST: tuple[Kernel[UpsampleNearest2d], ...] = (
    Kernel("bt_upsample_nearest2d_ref", "upsample/ref.c", _nearest_params, pack=_nearest_tables),
)
BILINEAR: tuple[Kernel[UpsampleBilinear2d], ...] = (
    Kernel(
        "bt_upsample_bilinear2d_f32_ref",
        "upsample/ref.c",
        lambda call: Params("bt_upsample_bilinear2d_f32", image_params(call.x.shape, call.y.shape)),
        pack=bilinear_tables,
    ),
)
