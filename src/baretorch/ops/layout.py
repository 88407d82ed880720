"""Operators that rearrange a whole tensor of any type: permute, reshape, expand, flip, unfold, pad, depth_windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from baretorch.ir.graph import Array, Op, Permuted, Quant, Shape, Signature, Tensor
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.strided import Move, StridedLoop, move_kernels, steps

PAD_LOOPS = 4


@dataclass(frozen=True)
class Permute(Op, name="permute", computes=False):
    """Dimension i of the output is dimension dims[i] of the input."""

    dims: tuple[int, ...]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_axes(self, self.dims, x)
        valid = len(self.dims) == len(x.shape)
        need(valid, self, f"{self.dims} does not name every dimension", inputs, f"each of 0 to {len(x.shape) - 1} once")
        quant = x.quant
        if quant is not None and quant.axis is not None:
            quant = replace(quant, axis=self.dims.index(quant.axis))
        return (Signature(tuple(x.shape[d] for d in self.dims), x.dtype, quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.transpose(inputs[0], self.dims),)


@dataclass(frozen=True)
class Reshape(Op, name="reshape", computes=False):
    """The elements of x in their order, in another shape. It has no kernel: the planner makes it a view."""

    shape: Shape

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(
            prod(self.shape) == x.count and all(n >= 0 for n in self.shape),
            self,
            f"{x.count} elements do not fit into shape {self.shape}",
            inputs,
            "a shape with as many elements",
        )
        return (Signature(self.shape, x.dtype, self._quant(x)),)

    def _quant(self, x: Tensor) -> Quant | None:
        """Return the scales along the axis that their axis becomes, or None if it does not stay one dimension."""
        if x.quant is None or x.quant.axis is None:
            return x.quant
        before, size = prod(x.shape[: x.quant.axis]), x.shape[x.quant.axis]
        found = (i for i, n in enumerate(self.shape) if n == size and prod(self.shape[:i]) == before)
        axis = next(found, None)
        return None if axis is None else replace(x.quant, axis=axis)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].reshape(self.shape),)

    def view(self, inputs: Sequence[Tensor]) -> int | None:
        return 0


@dataclass(frozen=True)
class Pad(Op, name="pad", computes=False):
    """(before, after) elements of `value` around each dimension; negative counts crop."""

    padding: tuple[tuple[int, int], ...]
    value: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(
            len(self.padding) == len(x.shape),
            self,
            f"{len(self.padding)} pairs of padding for {len(x.shape)} dimensions",
            inputs,
            "one (before, after) per dimension",
        )
        shape = tuple(n + before + after for n, (before, after) in zip(x.shape, self.padding, strict=True))
        need(
            all(n >= 0 for n in shape),
            self,
            f"padding {self.padding} crops more than the input has",
            inputs,
            "dimensions that stay at 0 or above",
        )
        return (Signature(shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        crop = tuple(
            slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, self.padding, strict=True)
        )
        grow = [(max(before, 0), max(after, 0)) for before, after in self.padding]
        return (np.pad(x[crop], grow, constant_values=np.array(self.value).astype(x.dtype)),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(replace(self, padding=tuple(self.padding[i] for i in np.argsort(dims))), dims)


@dataclass(frozen=True)
class Expand(Op, name="expand", computes=False):
    """Dimensions of 1, and missing ones at the front, repeated to `shape`: broadcasting, written out."""

    shape: Shape

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        front = len(self.shape) - len(x.shape)
        need(
            front >= 0 and all(n in (1, to) for n, to in zip(x.shape, self.shape[front:], strict=True)),
            self,
            f"shape {x.shape} does not expand to {self.shape}",
            inputs,
            "counted from the last, dimensions that are equal or 1",
        )
        return (Signature(self.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.broadcast_to(inputs[0], self.shape).copy(),)


@dataclass(frozen=True)
class Flip(Op, name="flip", computes=False):
    """The elements of these axes in reverse order."""

    axes: tuple[int, ...]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_axes(self, self.axes, x)
        return (Signature(x.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.flip(inputs[0], self.axes).copy(),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(Flip(tuple(sorted(dims[a] for a in self.axes))), dims)


@dataclass(frozen=True)
class Unfold(Op, name="unfold", computes=False):
    """Windows of `size` entries of an axis, each `step` after the one before: the axis becomes two, windows and their
    entries."""

    axis: int
    size: int
    step: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_axes(self, (self.axis,), x)
        need(
            0 < self.size <= x.shape[self.axis] and self.step > 0,
            self,
            f"no windows of {self.size}, {self.step} apart",
            inputs,
            f"a size from 1 to {x.shape[self.axis]}, and a step above 0",
        )
        count = (x.shape[self.axis] - self.size) // self.step + 1
        return (Signature((*x.shape[: self.axis], count, self.size, *x.shape[self.axis + 1 :]), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        begin = np.arange(0, inputs[0].shape[self.axis] - self.size + 1, self.step)
        return (np.take(inputs[0], begin[:, None] + np.arange(self.size), self.axis),)


def _permute(call: Call[Permute]) -> Move:
    x, y = steps(call.x.shape), steps(call.y.shape)
    return Move(
        call.x.dtype.size,
        tuple(StridedLoop(call.x.shape[d], x[d], y[i]) for i, d in enumerate(call.op.dims)),
    )


def _expand(call: Call[Expand]) -> Move:
    shape = (1,) * (len(call.y.shape) - len(call.x.shape)) + call.x.shape
    x = (0 if n == 1 else step for n, step in zip(shape, steps(shape), strict=True))
    return Move(call.x.dtype.size, tuple(map(StridedLoop, call.y.shape, x, steps(call.y.shape))))


def _flip(call: Call[Flip]) -> Move:
    shape, y = call.x.shape, steps(call.x.shape)
    x = tuple(-step if i in call.op.axes else step for i, step in enumerate(y))
    start = sum((shape[a] - 1) * y[a] for a in call.op.axes)
    return Move(call.x.dtype.size, tuple(map(StridedLoop, shape, x, y)), x_start=start)


def _unfold(call: Call[Unfold]) -> Move:
    axis, step = call.op.axis, call.op.step
    x = steps(call.x.shape)
    strides = (*x[:axis], step * x[axis], *x[axis:])
    return Move(call.x.dtype.size, tuple(map(StridedLoop, call.y.shape, strides, steps(call.y.shape))))


def _pad_loops(call: Call[Pad]) -> list[tuple[int, int, int]]:
    """Return the loops over the output as (input count, output count, before). A dimension without padding joins the
    one outside of it."""
    loops: list[tuple[int, int, int]] = []
    for size, out, (before, _) in zip(call.x.shape, call.y.shape, call.op.padding, strict=True):
        if loops and before == 0 and size == out:
            outer = loops[-1]
            loops[-1] = (outer[0] * size, outer[1] * size, outer[2] * size)
        else:
            loops.append((size, out, before))
    return loops


def _pad_params(call: Call[Pad]) -> Params:
    loops = _pad_loops(call)
    in_, out, before = zip(*([(1, 1, 0)] * (PAD_LOOPS - len(loops)) + loops), strict=True)
    dtype = call.x.dtype.numpy
    bits = np.array(call.op.value).astype(dtype).view(f"i{dtype.itemsize}")
    return Params("bt_pad", (("in", in_), ("out", out), ("before", before), ("value", int(bits))))


def _pad_overlap(call: Call[Pad]) -> int:
    """Return the distance of a kernel that writes rows of y one after the other while it reads their rows of x; rows of
    padding read nothing."""
    loops = [(1, 1, 0)] * (PAD_LOOPS - len(_pad_loops(call))) + _pad_loops(call)
    size, nothing = call.x.dtype.size, call.x.bytes
    row, inside = np.zeros((), np.int64), np.ones((), np.bool_)
    for in_, out, before in loops[:-1]:
        at = np.arange(out) - before
        row = row[..., None] * in_ + at
        inside = inside[..., None] & (at >= 0) & (at < in_)
    in_, out, before = loops[-1]
    reads = np.where(inside, (row * in_ + max(-before, 0)) * size, nothing).reshape(-1)
    return overlap.distance(reads, np.arange(1, reads.size + 1) * out * size, 1)


def _pad_kernel(size: int) -> Kernel[Pad]:
    return Kernel(
        f"bt_pad_{8 * size}_ref",
        "pad/ref.c",
        _pad_params,
        fits=lambda call: call.x.dtype.size == size and len(_pad_loops(call)) <= PAD_LOOPS,
        overlap=overlap.first_only(_pad_overlap),
    )


PERMUTE: tuple[Kernel[Permute], ...] = move_kernels(_permute)
EXPAND: tuple[Kernel[Expand], ...] = move_kernels(_expand)
FLIP: tuple[Kernel[Flip], ...] = move_kernels(_flip)
UNFOLD: tuple[Kernel[Unfold], ...] = move_kernels(_unfold)
PAD: tuple[Kernel[Pad], ...] = tuple(map(_pad_kernel, (1, 2, 4, 8)))


@dataclass(frozen=True)
class DepthWindows(Op, name="depth_windows", computes=False):
    """x[N, D, H, W, C] -> [N D', H, W, kernel C]: the frames of each window along the depth, next to each other. Each
    of `groups` equal parts of the channels has the channels of all frames together."""

    kernel: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(len(x.shape) == 5, self, "the input must have five dimensions", inputs, "x[N, D, H, W, C]")
        need(
            min(self.kernel, self.stride, self.dilation, self.groups) > 0 and x.shape[4] % self.groups == 0,
            self,
            f"{x.shape[4]} channels do not fit windows of {self.kernel} and groups of {self.groups}",
            inputs,
            "kernel, stride and dilation of 1 or more, and channels that are a multiple of groups",
        )
        windows = self.windows(x.shape[1])
        need(windows > 0, self, "the output is empty", inputs, f"a depth that holds {self.kernel} frames")
        n, _, h, w, c = x.shape
        return (Signature((n * windows, h, w, self.kernel * c), x.dtype, x.quant),)

    def windows(self, depth: int) -> int:
        return (depth - self.dilation * (self.kernel - 1) - 1) // self.stride + 1

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        n, d, h, w, c = inputs[0].shape
        grouped = inputs[0].reshape(n, d, h, w, self.groups, c // self.groups)
        starts = np.arange(self.windows(d)) * self.stride
        frames = grouped[:, starts[:, None] + np.arange(self.kernel) * self.dilation]
        return (frames.transpose(0, 1, 3, 4, 5, 2, 6).reshape(-1, h, w, self.kernel * c),)


def _depth_windows(call: Call[DepthWindows]) -> Move:
    op = call.op
    n, d, h, w, c = call.x.shape
    windows, part = op.windows(d), c // op.groups
    batch, frame, row, pixel, group, _ = steps((n, d, h, w, op.groups, part))
    y = steps((n, windows, h, w, op.groups, op.kernel, part))
    return Move(
        call.x.dtype.size,
        (
            StridedLoop(n, batch, y[0]),
            StridedLoop(windows, op.stride * frame, y[1]),
            StridedLoop(h, row, y[2]),
            StridedLoop(w, pixel, y[3]),
            StridedLoop(op.groups, group, y[4]),
            StridedLoop(op.kernel, op.dilation * frame, y[5]),
            StridedLoop(part, 1, 1),
        ),
    )


DEPTH_WINDOWS: tuple[Kernel[DepthWindows], ...] = move_kernels(_depth_windows)
