"""qsoftmax: softmax of int8 numbers, in integers only. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from baretorch.ir import Array, DType, Op, Quant, Signature, Tensor
from baretorch.ops import overlap
from baretorch.ops.check import need
from baretorch.ops.kernel import Call, Kernel, Packed, Params

LONGEST = 1 << 16  # numbers in a row: a sum of more could leave 32 bits
RESULT = Quant((1 / 256,), (-128,))


@dataclass(frozen=True)
class QSoftmax(Op):
    """x int8[..., n] with this scale -> its softmax along the last axis, int8 with scale 1/256 and zero point -128."""

    name: ClassVar[str] = "qsoftmax"
    scale: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(
            x.dtype is DType.INT8 and bool(x.shape) and 0 < x.shape[-1] <= LONGEST,
            self,
            "the input is not what an int8 softmax takes",
            inputs,
            f"int8, 1 to {LONGEST} along the last axis",
        )
        return (Signature(x.shape, DType.INT8, RESULT),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        e = self.table()[x.max(axis=-1, keepdims=True) - x].astype(np.int64)
        inverse = 0xFFFFFFFF // e.sum(axis=-1, keepdims=True)
        return ((np.minimum(((e * inverse >> 23) + 1) >> 1, 255) - 128).astype(np.int8),)

    def table(self) -> Array:
        """e to the minus i steps, for every distance i from the largest, in 16 bits."""
        return np.asarray(np.rint(65535 * np.exp(-self.scale * np.arange(256))), np.uint16)


def _params(call: Call[QSoftmax]) -> Params:
    return Params("bt_qsoftmax", (("rows", prod(call.x.shape[:-1])), ("length", call.x.shape[-1])))


def _pack(call: Call[QSoftmax]) -> tuple[Packed, ...]:
    return (Packed("table", call.op.table().view(np.int16)),)


KERNELS: tuple[Kernel[QSoftmax], ...] = (
    Kernel("bt_qsoftmax_ref", "qsoftmax/ref.c", _params, pack=_pack, overlap=overlap.elementwise),
)
