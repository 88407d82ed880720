"""Operators that copy parts of tensors, of any type: slice, cat, copy. One kernel serves them all.

A slice of the outermost dimension is a view. A cat becomes one `place` per input: the plan's way to let several
steps make one tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir import Array, Op, Signature, Tensor
from baretorch.ops.check import need, need_axes
from baretorch.ops.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Slice(Op):
    """Elements start, start + step, … before stop of one axis; 0 <= start <= stop <= the axis' length."""

    name: ClassVar[str] = "slice"
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
            f"{self.start}:{self.stop}:{self.step} is no part of axis {self.axis}",
            inputs,
            "0 <= start <= stop <= the axis' length, and a positive step",
        )
        count = -(-(self.stop - self.start) // self.step)
        return (Signature((*x.shape[: self.axis], count, *x.shape[self.axis + 1 :]), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        part = (slice(None),) * self.axis + (slice(self.start, self.stop, self.step),)
        return (np.ascontiguousarray(inputs[0][part]),)

    def view(self, inputs: Sequence[Tensor]) -> int | None:
        """A run of the outermost dimension that is not 1 lies together. Kernels load words, so it begins at one."""
        (x,) = inputs
        together = prod(x.shape[: self.axis]) == 1 and (self.step == 1 or self.stop - self.start <= 1)
        offset = self.start * prod(x.shape[self.axis + 1 :]) * x.dtype.size
        return offset if together and offset % 4 == 0 else None


@dataclass(frozen=True)
class Cat(Op):
    """The inputs one after the other along an axis."""

    name: ClassVar[str] = "cat"
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

    def pieces(self, call: Call[Any]) -> tuple[Call[Any], ...]:
        start, calls = 0, []
        for x in call.inputs:
            if x.count:
                calls.append(Call(Place(self.axis, start), (x,), call.outputs))
            start += x.shape[self.axis]
        return tuple(calls)


@dataclass(frozen=True)
class Place(Op):
    """Write the input into the output from `start` of an axis on. Only in plans: in a Graph it would not be a value."""

    name: ClassVar[str] = "place"
    axis: int
    start: int


@dataclass(frozen=True)
class Copy(Op):
    """The same value in other memory."""

    name: ClassVar[str] = "copy"

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        return (Signature(x.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].copy(),)


def _move(
    outer: int, count: int, size: int, x: tuple[int, int, int] = (0, 0, 0), y: tuple[int, int, int] = (0, 0, 0)
) -> Params:
    """x and y: start, bytes per outer index, bytes per block."""
    fields = [("outer", outer), ("count", count), ("bytes", size)]
    for who, (start, per_outer, step) in (("x", x), ("y", y)):
        fields += [(f"{who}_start", start), (f"{who}_outer", per_outer), (f"{who}_step", step)]
    return Params("bt_move", tuple(fields))


def _slice(call: Call[Slice]) -> Params:
    op, x = call.op, call.x
    inner = prod(x.shape[op.axis + 1 :]) * x.dtype.size
    outer, count = prod(x.shape[: op.axis]), call.y.shape[op.axis]
    start, whole = op.start * inner, x.shape[op.axis] * inner
    if op.step == 1:
        return _move(outer, 1, count * inner, (start, whole, 0), (0, count * inner, 0))
    return _move(outer, count, inner, (start, whole, op.step * inner), (0, count * inner, inner))


def _place(call: Call[Place]) -> Params:
    op, x, y = call.op, call.x, call.y
    inner = prod(x.shape[op.axis + 1 :]) * x.dtype.size
    size = x.shape[op.axis] * inner
    return _move(prod(x.shape[: op.axis]), 1, size, (0, size, 0), (op.start * inner, y.shape[op.axis] * inner, 0))


def _copy(call: Call[Copy]) -> Params:
    return _move(1, 1, call.x.bytes)


CAT_KERNELS: tuple[Kernel[Cat], ...] = ()  # the plan makes places of it
SLICE_KERNELS: tuple[Kernel[Slice], ...] = (Kernel("bt_move_ref", "move/ref.c", _slice),)
PLACE_KERNELS: tuple[Kernel[Place], ...] = (Kernel("bt_move_ref", "move/ref.c", _place),)
COPY_KERNELS: tuple[Kernel[Copy], ...] = (Kernel("bt_move_ref", "move/ref.c", _copy),)
