"""Resampling of NHWC images: nearest neighbour, bilinear and bicubic, and sampling at places given by a tensor.

Which inputs an output reads, and the share of each, is computed here, in PyTorch's float32 arithmetic, and stored as
tables of a row and a column: a device copies or mixes, and computes no coordinates. Only the places of grid_sample2d
are computed on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params
from baretorch.ops.helpers.window import Pair, image_params

LARGEST = 1 << 15  # of an image's height and width: tables hold int16


@dataclass(frozen=True)
class Resampled(Op):
    """Images of another size; per output, `step` inputs are passed each way."""

    any_type: ClassVar[bool] = False
    size: Pair
    step: tuple[float, float]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        if not self.any_type:
            need_float32(self, inputs)
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
class UpsampleNearest2d(Resampled, name="upsample_nearest2d", computes=False, any_type=True):
    """Output i takes input floor(i * step), or floor((i + 0.5) * step) if `exact`; any type of element."""

    exact: bool = False

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        rows, columns = (self.sources(axis, x.shape[1 + axis]) for axis in (0, 1))
        return (x[:, rows][:, :, columns],)

    def sources(self, axis: int, size: int) -> Array:
        """Return the input that each output along the height (0) or width (1) reads."""
        at = (np.arange(self.size[axis], dtype=np.float32) + np.float32(0.5 * self.exact)) * np.float32(self.step[axis])
        return np.asarray(np.minimum(np.floor(at), size - 1), np.int16)


@dataclass(frozen=True)
class UpsampleBilinear2d(Resampled, name="upsample_bilinear2d"):
    """Output i is at (i + 0.5) * step - 0.5 of the input, or i * step if `align_corners`, between two inputs each way.
    An axis that keeps its size is not resampled. As in PyTorch, an infinity with a share of 0 gives NaN."""

    align_corners: bool = False

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        rows, down = self.sources(0, x.shape[1])
        columns, right = self.sources(1, x.shape[2])
        with np.errstate(all="ignore"):
            between = _mix(x, columns, right[:, np.newaxis], 2)
            return (_mix(between, rows, down[:, np.newaxis, np.newaxis], 1).astype(np.float32),)

    def sources(self, axis: int, size: int) -> tuple[Array, Array]:
        """Return for each output along the height (0) or width (1) the first of two inputs, and the share of the
        next."""
        index = np.arange(self.size[axis], dtype=np.float32)
        if self.size[axis] == size:
            return index.astype(np.int16), np.zeros_like(index)
        step = np.float32(self.step[axis])
        at = index * step if self.align_corners else (index + np.float32(0.5)) * step - np.float32(0.5)
        first = np.minimum(np.floor(np.maximum(at, 0)), size - 1)
        return first.astype(np.int16), np.clip(np.maximum(at, 0) - first, 0, 1).astype(np.float32)


def _mix(x: Array, first: Array, share: Array, axis: int) -> Array:
    """Return the mix of x at `first` and the one after, along an axis; the last is its own successor."""
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


MODES = ("bilinear", "nearest", "bicubic")  # in PyTorch's order
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class UpsampleBicubic2d(Resampled, name="upsample_bicubic2d"):
    """Output i is at (i + 0.5) * step - 0.5 of the input, or i * step if `align_corners`, and is computed from four
    inputs each way; the border's inputs replace those outside."""

    align_corners: bool = False

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        rows, down = self.sources(0, x.shape[1])
        columns, across = self.sources(1, x.shape[2])
        with np.errstate(all="ignore"):
            lines = np.einsum("nhwjc,wj->nhwc", x[:, :, columns], across)
            return (np.einsum("nhiwc,hi->nhwc", lines[:, rows], down).astype(np.float32),)

    def sources(self, axis: int, size: int) -> tuple[Array, Array]:
        """Return for each output along the height (0) or width (1) four inputs and their shares."""
        index, step = np.arange(self.size[axis], dtype=np.float32), np.float32(self.step[axis])
        at = index * step if self.align_corners else (index + np.float32(0.5)) * step - np.float32(0.5)
        first = np.floor(at)
        inputs = np.clip(first[:, None] + np.arange(-1, 3), 0, size - 1).astype(np.int16)
        return inputs, cubic_weights(at - first).astype(np.float32)


@dataclass(frozen=True)
class GridSample2d(Op, name="grid_sample2d"):
    """x[N, H, W, C], grid[N, h, w, 2] -> [N, h, w, C]: x at the place (across, down) in the grid, from -1 to 1 for the
    image's borders, or with `align_corners` for the centers of its outer pixels. Outside of it are zeros, the border's
    pixels, or its reflection. NaN is outside."""

    mode: str
    padding: str
    align_corners: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        if self.mode not in MODES or self.padding not in PADDINGS:
            raise InternalError(f"grid_sample2d by {self.mode} and {self.padding}")
        need_float32(self, inputs)
        x, grid = inputs
        valid = len(x.shape) == len(grid.shape) == 4 and x.shape[0] == grid.shape[0] and grid.shape[3] == 2
        need(valid, self, "the inputs are not images and places in them", inputs, "x[N, H, W, C] and grid[N, h, w, 2]")
        need(min(x.shape[1:3]) > 0, self, "the image is empty", inputs, "a height and width of at least 1")
        return (Signature((*grid.shape[:3], x.shape[3]), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, grid = inputs
        across, down = (self._pixels(grid[..., i], x.shape[2 - i]) for i in (0, 1))
        columns, right = self._sources(across, x.shape[2])
        rows, below = self._sources(down, x.shape[1])
        wide = np.pad(x.astype(np.float64), ((0, 0), (0, 1), (0, 1), (0, 0)))  # the place of everything outside
        image = np.arange(x.shape[0])[:, None, None, None, None]
        taken = wide[image, rows[..., :, None], columns[..., None, :]]
        with np.errstate(all="ignore"):
            return (np.einsum("nhwijc,nhwi,nhwj->nhwc", taken, below, right).astype(np.float32),)

    def _pixels(self, v: Array, size: int) -> Array:
        """Return places from -1 to 1 in pixels."""
        one, half = np.float32(1), np.float32(0.5)
        with np.errstate(all="ignore"):
            if self.align_corners:
                return np.asarray((v + one) * half * np.float32(size - 1))
            return np.asarray(((v + one) * np.float32(size) - one) * half)

    def _sources(self, at: Array, size: int) -> tuple[Array, Array]:
        """Return the inputs for each place along an axis, `size` being one outside, and their shares."""
        if self.mode == "bicubic":
            at = np.where(at > -(2**23), np.minimum(at, np.float32(2**23)), np.float32(-(2**23)))
            first = np.floor(at)
            pixels = self._inside(first[..., None] + np.arange(-1, 3, dtype=np.float32), size)
            shares = cubic_weights(at - first)
        elif self.mode == "nearest":
            pixels = np.rint(self._inside(at, size))[..., None]
            shares = np.ones_like(pixels, np.float64)
        else:
            at = self._inside(at, size)
            first = np.floor(at)
            pixels = first[..., None] + np.arange(2)
            shares = np.stack([1 - (at - first), at - first], -1).astype(np.float64)
        whole = pixels.astype(np.int64)
        outside = (whole < 0) | (whole >= size)
        return np.where(outside, size, whole), np.where(outside, 0.0, shares)

    def _inside(self, at: Array, size: int) -> Array:
        last = np.float32(size - 1)
        with np.errstate(all="ignore"):
            if self.padding == "zeros":
                return np.where(at > -4, np.minimum(at, last + 4), np.float32(-4)).astype(np.float32)
            if self.padding == "reflection":
                low, span = (np.float32(0), last) if self.align_corners else (np.float32(-0.5), np.float32(size))
                if span == 0:
                    return np.zeros_like(at)
                past = np.abs(at - low)
                rest, turns = np.fmod(past, span), np.floor(past / span)
                at = np.where(np.fmod(turns, 2) == 0, rest + low, span - rest + low)
            return np.where(at > 0, np.minimum(at, last), np.float32(0)).astype(np.float32)


def cubic_weights(t: Array) -> Array:
    """Return the shares of four neighbours for the place t after the second, by cubic convolution with a = -0.75."""
    a = -0.75
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t.astype(np.float64), 1 - t.astype(np.float64))]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (t.astype(np.float64) + 1, 2 - t.astype(np.float64))]
    return np.stack([far[0], near[0], near[1], far[1]], -1)


def _bicubic_tables(call: Call[UpsampleBicubic2d]) -> tuple[Packed, ...]:
    rows, down = call.op.sources(0, call.x.shape[1])
    columns, across = call.op.sources(1, call.x.shape[2])
    return (Packed("rows", rows), Packed("down", down), Packed("columns", columns), Packed("across", across))


def _grid_params(call: Call[GridSample2d]) -> Params:
    own = (("padding", PADDINGS.index(call.op.padding)), ("corners", int(call.op.align_corners)))
    return Params("bt_grid_sample2d_f32", (*image_params(call.x.shape, call.y.shape), *own))


def _grid_kernel(mode: str) -> Kernel[GridSample2d]:
    symbol = f"bt_grid_sample2d_{mode}_f32_ref"
    return Kernel(symbol, "sample/ref.c", _grid_params, fits=lambda call: call.op.mode == mode)


BICUBIC: tuple[Kernel[UpsampleBicubic2d], ...] = (
    Kernel(
        "bt_upsample_bicubic2d_f32_ref",
        "sample/ref.c",
        lambda call: Params("bt_upsample_bicubic2d_f32", image_params(call.x.shape, call.y.shape)),
        pack=_bicubic_tables,
    ),
)
GRID_SAMPLE: tuple[Kernel[GridSample2d], ...] = tuple(map(_grid_kernel, MODES))
