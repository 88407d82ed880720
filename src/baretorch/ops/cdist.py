"""cdist: the distances between every row of one tensor and every row of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need, need_float32
from baretorch.ops.helpers.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Cdist(Op, name="cdist"):
    """a[.., P, M], b[.., R, M] -> [.., P, R], by the norm of this order of their differences. Order 0 counts those that
    are not 0, and inf takes the largest."""

    order: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        a, b = inputs
        need_float32(self, inputs)
        alike = len(a.shape) == len(b.shape) >= 2 and (a.shape[:-2], a.shape[-1]) == (b.shape[:-2], b.shape[-1])
        need(alike, self, "the inputs are not rows of one length", inputs, "a[.., P, M] and b[.., R, M]")
        need(self.order >= 0, self, f"order {self.order} is not supported", inputs, "order 0 or more")
        return (Signature((*a.shape[:-1], b.shape[-2]), DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (i.astype(np.float64) for i in inputs)
        with np.errstate(all="ignore"):
            d = np.abs(a[..., :, None, :] - b[..., None, :, :])
            if self.order == inf:
                y = d.max(-1, initial=0.0)
            elif self.order == 0:
                y = np.asarray((d != 0).sum(-1), np.float64)
            else:
                y = (d**self.order).sum(-1) ** (1 / self.order)
            return (y.astype(np.float32),)

    def macs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        return outputs[0].count * inputs[0].shape[-1]


def _params(call: Call[Cdist]) -> Params:
    *batch, rows, length = call.x.shape
    sizes = {"batch": prod(batch), "rows": rows, "columns": call.inputs[1].shape[-2], "length": length}
    return Params("bt_cdist_f32", (*sizes.items(), ("order", call.op.order)))


KERNELS: tuple[Kernel[Cdist], ...] = (Kernel("bt_cdist_f32_ref", "cdist/ref.c", _params),)
