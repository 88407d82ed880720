"""Reductions over some of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Shape, Signature, Tensor
from baretorch.ops.check import need_axes, need_float32
from baretorch.ops.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Mean(Op):
    """The mean over `axes`, which stay as dimensions of 1 if `keepdim`."""

    name: ClassVar[str] = "mean"
    axes: tuple[int, ...]
    keepdim: bool

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_axes(self, self.axes, inputs[0])
        shape = tuple(
            1 if i in self.axes else n for i, n in enumerate(inputs[0].shape) if self.keepdim or i not in self.axes
        )
        return (Signature(shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        count = prod(x.shape[a] for a in self.axes)
        with np.errstate(all="ignore"):
            y = x.sum(axis=self.axes, keepdims=self.keepdim) / np.float64(count)
        return (np.asarray(y, np.float32),)


def _split(shape: Shape, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Elements before, within and after `axes`, if these are neighbours; dimensions of 1 do not count."""
    wide = [i for i, n in enumerate(shape) if n != 1]
    run = [i for i in wide if i in axes]
    if not run:
        return prod(shape), 1, 1
    if run != [i for i in wide if run[0] <= i <= run[-1]]:
        return None
    return prod(shape[: run[0]]), prod(shape[run[0] : run[-1] + 1]), prod(shape[run[-1] + 1 :])


def _params(call: Call[Mean]) -> Params:
    split = _split(call.x.shape, call.op.axes)
    assert split is not None, "`fits` was not asked"
    return Params("bt_reduce_f32", tuple(zip(("outer", "length", "inner"), split, strict=True)))


KERNELS: tuple[Kernel[Mean], ...] = (
    Kernel(
        "bt_mean_f32_ref",
        "reduce/ref.c",
        _params,
        fits=lambda call: _split(call.x.shape, call.op.axes) is not None,
    ),
)
