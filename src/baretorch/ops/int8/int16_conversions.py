"""widen, narrow, quantize16 and dequantize16: between float32, int8 and int16.

The int16 of a tensor has a scale 128 times finer than its int8 and the zero point 0, so that widening is exact, and
what is widened and narrowed again is what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Quant, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.int8 import arithmetic

FINER = 128


@dataclass(frozen=True)
class _Conversion(Op, computes=False):
    takes: ClassVar[DType]
    gives: ClassVar[DType]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is self.takes, self, f"{x.dtype.label} cannot be converted", inputs, self.takes.label)
        return (Signature(x.shape, self.gives, self.quant()),)

    def quant(self) -> Quant | None:
        """Of what it gives, if the operator knows."""
        return None

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


@dataclass(frozen=True)
class Widen(_Conversion, name="widen", takes=DType.INT8, gives=DType.INT16):
    """int8 -> int16: 128 * (x - zero)."""

    zero: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (((inputs[0].astype(np.int32) - self.zero) * FINER).astype(np.int16),)


@dataclass(frozen=True)
class Narrow(_Conversion, name="narrow", takes=DType.INT16, gives=DType.INT8):
    """int16 -> int8: x / 128 + zero, half up, limited to -128..127."""

    zero: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        steps = (inputs[0].astype(np.int32) + FINER // 2) // FINER
        return (np.clip(steps + self.zero, -128, 127).astype(np.int8),)


@dataclass(frozen=True)
class Quantize16(_Conversion, name="quantize16", takes=DType.FLOAT32, gives=DType.INT16):
    """float32 -> int16: x / scale, half to even, limited to -32768..32767; NaN becomes 0."""

    scale: float

    def quant(self) -> Quant | None:
        return Quant((self.scale,), (0,))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.quantize(inputs[0], self.scale, 0, np.int16),)


@dataclass(frozen=True)
class Dequantize16(_Conversion, name="dequantize16", takes=DType.INT16, gives=DType.FLOAT32):
    """int16 -> float32: x * scale."""

    scale: float

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.dequantize(inputs[0], self.scale, 0),)


def _params(call: Call[Any]) -> Params:
    op = call.op
    zero = op.zero if isinstance(op, (Widen, Narrow)) else 0
    scale = op.scale if isinstance(op, (Quantize16, Dequantize16)) else 1.0
    factor = float(np.float32(1.0 / scale if isinstance(op, Quantize16) else scale))
    return Params("bt_wide_form", (("count", call.x.count), ("zero", zero), ("factor", factor)))


def kernels(op: type[Op]) -> tuple[Kernel[Any], ...]:
    return (Kernel(f"bt_{op.name}_ref", "wide/ref.c", _params),)


OPS: tuple[type[Op], ...] = (Widen, Narrow, Quantize16, Dequantize16)
