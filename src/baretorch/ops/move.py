"""Operators that copy parts of tensors, of any type: slice, cat, slice_scatter, copy, choose.

A slice of the outermost dimension is a view. A cat becomes one `place` per input, a slice_scatter a copy and a
`place`: this is how several steps of a plan compute one tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.families import AlongAxis
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.helpers.strided import Move, StridedLoop, move_kernels, steps


@dataclass(frozen=True)
class Slice(AlongAxis, name="slice", computes=False):
    """Elements start, start + step, … before stop of one axis; 0 <= start <= stop <= the axis' length."""

    axis: int
    start: int
    stop: int
    step: int = 1

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_axes(self, (self.axis,), x)
        need(
            0 <= self.start <= self.stop <= x.shape[self.axis] and self.step > 0,
            self,
            f"{self.start}:{self.stop}:{self.step} is not a part of axis {self.axis}",
            inputs,
            "0 <= start <= stop <= the axis' length, and a positive step",
        )
        count = -(-(self.stop - self.start) // self.step)
        return (Signature((*x.shape[: self.axis], count, *x.shape[self.axis + 1 :]), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        part = (slice(None),) * self.axis + (slice(self.start, self.stop, self.step),)
        return (np.ascontiguousarray(inputs[0][part]),)

    def view(self, inputs: Sequence[Tensor]) -> int | None:
        """Return the offset of a run of the outermost dimension that is not 1. Kernels load words, so it begins at a
        word."""
        (x,) = inputs
        together = prod(x.shape[: self.axis]) == 1 and (self.step == 1 or self.stop - self.start <= 1)
        offset = self.start * prod(x.shape[self.axis + 1 :]) * x.dtype.size
        return offset if together and offset % 4 == 0 else None


@dataclass(frozen=True)
class Assembled(Op):
    """An operator whose output several steps make, one after the other."""

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        raise NotImplementedError


@dataclass(frozen=True)
class Overwrite(Assembled, overwrites=0):
    """An operator that changes some elements of its first input. It begins with a copy, unless the plan finds that no
    later step reads that input, and changes it in place."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        return (Signature(x.shape, x.dtype, x.quant),)

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        return (Call(Copy(), (call.x,), call.outputs), Call(self.change(), call.inputs[1:], call.outputs))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        y = inputs[0].copy()
        self.change().write(y, *inputs[1:])
        return (y,)

    def change(self) -> Change:
        """Return the step that changes the copy with the other inputs."""
        raise NotImplementedError


@dataclass(frozen=True)
class Change(Op):
    """A step that writes a part of its output and leaves the rest. Only plans contain it: in a Graph it would not be a
    value."""

    def write(self, y: Array, *inputs: Array) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Cat(AlongAxis, Assembled, name="cat", computes=False):
    """The inputs one after the other along an axis."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        first = inputs[0]
        need_axes(self, (self.axis,), first)
        for x in inputs[1:]:
            same = len(x.shape) == len(first.shape) and x.dtype is first.dtype
            need(
                same
                and all(a == b for i, (a, b) in enumerate(zip(x.shape, first.shape, strict=True)) if i != self.axis),
                self,
                "the inputs differ in more than the axis",
                inputs,
                f"equal types, and equal sizes but for axis {self.axis}",
            )
        total = sum(x.shape[self.axis] for x in inputs)
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return (Signature(shape, first.dtype, first.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.concatenate(inputs, self.axis),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == self.axis else cut.at_the_same_place(self, inputs, y, axis, start, stop)

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        start, calls = 0, []
        for x in call.inputs:
            if x.count:
                calls.append(Call(PlaceSlice(self.axis, start), (x,), call.outputs))
            start += x.shape[self.axis]
        return tuple(calls)


@dataclass(frozen=True)
class SliceScatter(AlongAxis, Overwrite, name="slice_scatter", computes=False):
    """x, but elements start, start + step, … of one axis are those of the second input."""

    axis: int
    start: int
    step: int = 1

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, source = inputs
        need_axes(self, (self.axis,), x)
        count = source.shape[self.axis] if len(source.shape) == len(x.shape) else -1
        shape = (*x.shape[: self.axis], count, *x.shape[self.axis + 1 :])
        last = self.start + (count - 1) * self.step
        need(
            source.shape == shape
            and source.dtype is x.dtype
            and self.start >= 0
            and self.step > 0
            and last < x.shape[self.axis],
            self,
            f"the source is not a part of axis {self.axis} from {self.start} on in steps of {self.step}",
            inputs,
            "a source of the input's type and, but for the axis, of its shape",
        )
        return super().infer(inputs)

    def change(self) -> Change:
        return PlaceSlice(self.axis, self.start, self.step)


@dataclass(frozen=True)
class PlaceSlice(Change, name="place"):
    """Write the input into the output from `start` of an axis on, at every `step`."""

    axis: int
    start: int
    step: int = 1

    def destination(self, inputs: Sequence[Tensor], y: Tensor) -> int | None:
        return self.start * prod(y.shape[self.axis + 1 :]) * y.dtype.size

    def is_empty(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
        return not any(t.count for t in inputs)

    def write(self, y: Array, *inputs: Array) -> None:
        (x,) = inputs
        stop = self.start + x.shape[self.axis] * self.step
        y[(slice(None),) * self.axis + (slice(self.start, stop, self.step),)] = x


@dataclass(frozen=True)
class Copy(Op, name="copy", computes=False):
    """A copy of the value in other memory."""

    def destination(self, inputs: Sequence[Tensor], y: Tensor) -> int | None:
        return 0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        return (Signature(x.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].copy(),)


def _slice(call: Call[Slice]) -> Move:
    op, x, y = call.op, steps(call.x.shape), steps(call.y.shape)
    loops = (StridedLoop(n, x[i] * (op.step if i == op.axis else 1), y[i]) for i, n in enumerate(call.y.shape))
    return Move(call.x.dtype.size, tuple(loops), x_start=op.start * x[op.axis])


def _place(call: Call[PlaceSlice]) -> Move:
    op, x, y = call.op, steps(call.x.shape), steps(call.y.shape)
    loops = (StridedLoop(n, x[i], y[i] * (op.step if i == op.axis else 1)) for i, n in enumerate(call.x.shape))
    return Move(call.x.dtype.size, tuple(loops), y_start=op.start * y[op.axis])


def _copy(call: Call[Copy]) -> Move:
    return Move(call.x.dtype.size, (StridedLoop(call.x.count, 1, 1),))


SLICE: tuple[Kernel[Slice], ...] = move_kernels(_slice)
PLACE: tuple[Kernel[PlaceSlice], ...] = move_kernels(_place)
COPY: tuple[Kernel[Copy], ...] = move_kernels(_copy)


@dataclass(frozen=True)
class Choose(Assembled, name="choose", computes=False, carried=slice(1, None)):
    """Returns a if the condition, a single boolean, holds, else b. Steps that only the other value needs are
    skipped."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        condition, a, b = inputs
        valid = condition.dtype is DType.BOOL and condition.count == 1
        need(valid, self, "the condition is not a single truth value", inputs, "bool[] as first input")
        alike = (a.shape, a.dtype) == (b.shape, b.dtype)
        need(alike, self, "the branches return different tensors", inputs, "the same shape and type from both")
        return (Signature(a.shape, a.dtype, a.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        condition, a, b = inputs
        return (a.copy() if condition.all() else b.copy(),)

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        """Return no steps: each side has one, which runs under a condition."""
        return ()

    def side(self, call: Call[Any], holds: bool) -> Call[Any]:
        """Return the step of a plan that copies a, if the condition holds, or b."""
        return Call(Copy(), (call.inputs[1 if holds else 2],), call.outputs)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)
