"""softmax along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Signature, Tensor
from baretorch.ops.check import need_axes, need_float32
from baretorch.ops.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Softmax(Op):
    """x -> e^x divided by its sum along `axis`."""

    name: ClassVar[str] = "softmax"
    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need_float32(self, inputs)
        need_axes(self, (self.axis,), inputs[0])
        return (Signature(inputs[0].shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.float64)
        with np.errstate(all="ignore"):
            e = np.exp(x - x.max(axis=self.axis, keepdims=True, initial=-np.inf))
            return ((e / e.sum(axis=self.axis, keepdims=True)).astype(np.float32),)


def _params(call: Call[Softmax]) -> Params:
    shape, axis = call.x.shape, call.op.axis
    return Params(
        "bt_softmax_f32",
        (("outer", prod(shape[:axis])), ("length", shape[axis]), ("inner", prod(shape[axis + 1 :]))),
    )


KERNELS: tuple[Kernel[Softmax], ...] = (Kernel("bt_softmax_f32_ref", "softmax/ref.c", _params),)
