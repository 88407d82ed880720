"""Conversions between float32 and the float types of 16 bits, which inputs and outputs may have: float16 (IEEE half
precision) and bfloat16 (the upper half of a float32). Halves are stored as their bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.int8.quantize import Conversion


def from_half(bits: Array, dtype: DType) -> Array:
    """Return the float32 of these bits, which is exact."""
    if dtype is DType.FLOAT16:
        return np.asarray(bits.view(np.float16).astype(np.float32))
    return np.asarray(bits.astype(np.uint32) << 16).view(np.float32)


def to_half(x: Array, dtype: DType) -> Array:
    """Return the bits of the nearest half, ties to even. Numbers that are too large become infinite. A NaN keeps its
    sign."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    if dtype is DType.FLOAT16:
        with np.errstate(over="ignore"):
            rounded = np.asarray(x, np.float32).astype(np.float16).view(np.uint16)
    else:
        rounded = np.asarray((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    nan = (bits >> 16 & 0x8000) | (0x7E00 if dtype is DType.FLOAT16 else 0x7FC0)
    return np.where(np.isnan(x), nan, rounded).astype(np.uint16)


class FromHalf(Pointwise, Conversion):
    """Halves as float32, which is exact."""

    gives = DType.FLOAT32

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (from_half(inputs[0], self.takes),)


class ToHalf(Pointwise, Conversion):
    """float32 as halves: the nearest, ties to even."""

    takes = DType.FLOAT32

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (to_half(inputs[0], self.gives),)


class FromFloat16(FromHalf, name="from_float16", takes=DType.FLOAT16):
    """float16 -> float32, which is exact."""


class ToFloat16(ToHalf, name="to_float16", gives=DType.FLOAT16):
    """float32 -> float16: half to even; 65520 and more become infinite."""


class FromBfloat16(FromHalf, name="from_bfloat16", takes=DType.BFLOAT16):
    """bfloat16 -> float32, which is exact."""


class ToBfloat16(ToHalf, name="to_bfloat16", gives=DType.BFLOAT16):
    """float32 -> bfloat16: half to even."""


def _kernel(op: type[Op]) -> Kernel[Any]:
    def params(call: Call[Any]) -> Params:
        return Params("bt_unary", (("count", call.x.count),))

    return Kernel(f"bt_{op.name}_ref", "halves/ref.c", params, overlap=overlap.elementwise, splits=cut.outermost)


FROM: dict[DType, Op] = {DType.FLOAT16: FromFloat16(), DType.BFLOAT16: FromBfloat16()}
TO: dict[DType, Op] = {DType.FLOAT16: ToFloat16(), DType.BFLOAT16: ToBfloat16()}
KERNELS = {op: (_kernel(op),) for op in (FromFloat16, ToFloat16, FromBfloat16, ToBfloat16)}
