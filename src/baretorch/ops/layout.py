"""Operators that move elements and do not change them: permute, reshape, pad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.check import need, need_axes
from baretorch.ops.kernel import Call, Kernel, Params

PERMUTE_LOOPS = 6
PAD_LOOPS = 4


@dataclass(frozen=True)
class Permute(Op):
    """Dimension i of the output is dimension dims[i] of the input."""

    name: ClassVar[str] = "permute"
    dims: tuple[int, ...]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_axes(self, self.dims, x)
        need(
            len(self.dims) == len(x.shape),
            self,
            f"{self.dims} does not name every dimension",
            inputs,
            f"each of 0 to {len(x.shape) - 1} once",
        )
        return (Signature(tuple(x.shape[d] for d in self.dims), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.transpose(inputs[0], self.dims),)


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in the same order under another shape. It has no kernel: the planner makes it a view."""

    name: ClassVar[str] = "reshape"
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
        return (Signature(self.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].reshape(self.shape),)

    def view(self, inputs: Sequence[Tensor]) -> int | None:
        return 0


@dataclass(frozen=True)
class Pad(Op):
    """(before, after) elements of `value` around each dimension; negative counts crop."""

    name: ClassVar[str] = "pad"
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
            f"padding {self.padding} takes away more than there is",
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
        return (np.pad(x[crop], grow, constant_values=self.value),)


def _permute_loops(call: Call[Permute]) -> list[tuple[int, int]]:
    """The loops over the output as (count, step in x); dimensions that travel together are one loop."""
    shape = call.x.shape
    loops: list[tuple[int, int]] = []
    for d in call.op.dims:
        count, step = shape[d], prod(shape[d + 1 :])
        if count == 1:
            continue
        if loops and loops[-1][1] == count * step:
            loops[-1] = (loops[-1][0] * count, step)
        else:
            loops.append((count, step))
    return loops


def _permute_params(call: Call[Permute]) -> Params:
    loops = _permute_loops(call)
    shape, step = zip(*([(1, 0)] * (PERMUTE_LOOPS - len(loops)) + loops), strict=True)
    return Params("bt_permute_f32", (("shape", shape), ("step", step)))


def _pad_loops(call: Call[Pad]) -> list[tuple[int, int, int]]:
    """The loops over the output as (input count, output count, before).

    A dimension without padding joins the one outside of it.
    """
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
    return Params("bt_pad_f32", (("in", in_), ("out", out), ("before", before), ("value", call.op.value)))


def _is_float32(call: Call[Any]) -> bool:
    return call.x.dtype is DType.FLOAT32


PERMUTE: tuple[Kernel[Permute], ...] = (
    Kernel(
        "bt_permute_f32_ref",
        "layout/ref.c",
        _permute_params,
        fits=lambda call: _is_float32(call) and len(_permute_loops(call)) <= PERMUTE_LOOPS,
    ),
)
RESHAPE: tuple[Kernel[Reshape], ...] = ()
PAD: tuple[Kernel[Pad], ...] = (
    Kernel(
        "bt_pad_f32_ref",
        "layout/ref.c",
        _pad_params,
        fits=lambda call: _is_float32(call) and len(_pad_loops(call)) <= PAD_LOOPS,
    ),
)
