"""to_fixed and from_fixed: between float32 and int16 with a fixed point, for the states of int8 layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class ToFixed(Op, name="to_fixed"):
    """float32 -> int16: x * 2^bits, half to even, limited to -32768..32767; NaN becomes 0."""

    bits: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.FLOAT32, self, f"{x.dtype.label} cannot be converted", inputs, "float32")
        return (Signature(x.shape, DType.INT16),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            scaled = np.rint(inputs[0] * np.float32(1 << self.bits))
        return (np.clip(np.where(np.isnan(scaled), 0, scaled), -32768, 32767).astype(np.int16),)


@dataclass(frozen=True)
class FromFixed(Op, name="from_fixed", computes=False):
    """int16 -> float32: x / 2^bits, which is exact."""

    bits: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.INT16, self, f"{x.dtype.label} cannot be converted", inputs, "int16")
        return (Signature(x.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].astype(np.float32) / np.float32(1 << self.bits),)


def _to(call: Call[ToFixed]) -> Params:
    return Params("bt_fixed_point", (("count", call.x.count), ("factor", float(1 << call.op.bits))))


def _from(call: Call[FromFixed]) -> Params:
    return Params("bt_fixed_point", (("count", call.x.count), ("factor", 1 / (1 << call.op.bits))))


TO: tuple[Kernel[ToFixed], ...] = (Kernel("bt_to_fixed_ref", "fixed_point/ref.c", _to),)
FROM: tuple[Kernel[FromFixed], ...] = (Kernel("bt_from_fixed_ref", "fixed_point/ref.c", _from),)
