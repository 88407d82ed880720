"""Conversions between float32, int8, int16, and int16 with a fixed point.

The int16 of a tensor has a scale 128 times finer than its int8 and the zero point 0, so that widening is exact, and
narrowing what was widened returns the same number. States of int8 layers have a fixed point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Quant, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.int8 import arithmetic
from baretorch.targets.features import FPU_DSP, MVE, SOFT

FINER = 128


@dataclass(frozen=True)
class Conversion(Op, computes=False):
    """An operator that converts each element of one type to another type."""

    takes: ClassVar[DType]
    gives: ClassVar[DType]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is self.takes, self, f"{x.dtype.label} cannot be converted", inputs, self.takes.label)
        return (Signature(x.shape, self.gives, self.quant()),)

    def quant(self) -> Quant | None:
        """Return the scale of the output, if the operator has it."""
        return None

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)


@dataclass(frozen=True)
class Quantize(Pointwise, Conversion, name="quantize", takes=DType.FLOAT32, gives=DType.INT8):
    """float32 -> int8: x / scale + zero, half to even, limited to -128..127."""

    scale: float
    zero: int

    def quant(self) -> Quant | None:
        return Quant((self.scale,), (self.zero,))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.quantize_array(inputs[0], self.scale, self.zero),)


@dataclass(frozen=True)
class Dequantize(Pointwise, Conversion, name="dequantize", takes=DType.INT8, gives=DType.FLOAT32):
    """int8 -> float32: (x - zero) * scale."""

    scale: float
    zero: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.dequantize(inputs[0], self.scale, self.zero),)


@dataclass(frozen=True)
class Widen(Conversion, name="widen", takes=DType.INT8, gives=DType.INT16):
    """int8 -> int16: 128 * (x - zero)."""

    zero: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (((inputs[0].astype(np.int32) - self.zero) * FINER).astype(np.int16),)


@dataclass(frozen=True)
class Narrow(Conversion, name="narrow", takes=DType.INT16, gives=DType.INT8):
    """int16 -> int8: x / 128 + zero, half up, limited to -128..127."""

    zero: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        steps = (inputs[0].astype(np.int32) + FINER // 2) // FINER
        return (np.clip(steps + self.zero, -128, 127).astype(np.int8),)


@dataclass(frozen=True)
class Quantize16(Conversion, name="quantize16", takes=DType.FLOAT32, gives=DType.INT16):
    """float32 -> int16: x / scale, half to even, limited to -32768..32767; NaN becomes 0."""

    scale: float

    def quant(self) -> Quant | None:
        return Quant((self.scale,), (0,))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.quantize_array(inputs[0], self.scale, 0, np.int16),)


@dataclass(frozen=True)
class Dequantize16(Conversion, name="dequantize16", takes=DType.INT16, gives=DType.FLOAT32):
    """int16 -> float32: x * scale."""

    scale: float

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.dequantize(inputs[0], self.scale, 0),)


@dataclass(frozen=True)
class ToFixed(Conversion, name="to_fixed", computes=True, takes=DType.FLOAT32, gives=DType.INT16):
    """float32 -> int16: x * 2^bits, half to even, limited to -32768..32767; NaN becomes 0."""

    bits: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            scaled = np.rint(inputs[0] * np.float32(1 << self.bits))
        return (np.clip(np.where(np.isnan(scaled), 0, scaled), -32768, 32767).astype(np.int16),)


@dataclass(frozen=True)
class FromFixed(Conversion, name="from_fixed", takes=DType.INT16, gives=DType.FLOAT32):
    """int16 -> float32: x / 2^bits, which is exact."""

    bits: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0].astype(np.float32) / np.float32(1 << self.bits),)


def flatten_rows(call: Call[Any], *others: type[Op]) -> Call[Any]:
    """Return the call of a quantize, a dequantize or one of the `others` with all axes but the last joined. It can
    then be cut into more parts: an image with channels first may have only three rows."""
    if not isinstance(call.op, (Quantize, Dequantize, *others)) or call.pitch or len(call.x.shape) < 3:
        return call

    def rows(t: Tensor) -> Tensor:
        return replace(t, shape=(prod(t.shape[:-1]), t.shape[-1]))

    return replace(call, inputs=(rows(call.x), *call.inputs[1:]), outputs=(rows(call.y),))


def _params(call: Call[Any], struct: str) -> Params:
    op = call.op
    scale = getattr(op, "scale", 1.0)
    factor = float(np.float32(1.0 / scale if op.takes is DType.FLOAT32 else scale))
    return Params(struct, (("count", call.x.count), ("zero", getattr(op, "zero", 0)), ("factor", factor)))


def _moderate(call: Call[Any]) -> bool:
    """Return whether the scale is far from subnormal numbers and overflow."""
    return bool(2.0**-100 < call.op.scale < 2.0**100)


def _kernels(name: str) -> tuple[Kernel[Any], ...]:
    """Return the kernels of the int8 operators."""
    ref = Kernel[Any](
        f"bt_{name}_ref",
        "quantize/ref.c",
        lambda call: _params(call, "bt_quantize"),
        overlap=overlap.elementwise,
        splits=cut.outermost,
    )
    soft = ref.for_cpu("soft", SOFT, fits=_moderate)
    return (ref.for_cpu("mve", MVE), ref.for_cpu("fpu", FPU_DSP), soft, ref)


def _int16_kernel(op: type[Op]) -> Kernel[Any]:
    return Kernel(f"bt_{op.name}_ref", "wide/ref.c", lambda call: _params(call, "bt_wide_form"))


def _fixed_kernel(op: type[Op]) -> Kernel[Any]:
    def params(call: Call[Any]) -> Params:
        factor = 2.0 ** (call.op.bits if isinstance(call.op, ToFixed) else -call.op.bits)
        return Params("bt_fixed_point", (("count", call.x.count), ("factor", factor)))

    return Kernel(f"bt_{op.name}_ref", "fixed_point/ref.c", params)


QUANTIZE = _kernels("quantize")
DEQUANTIZE = _kernels("dequantize")
OTHERS: dict[type[Op], tuple[Kernel[Any], ...]] = {
    **{op: (_int16_kernel(op),) for op in (Widen, Narrow, Quantize16, Dequantize16)},
    **{op: (_fixed_kernel(op),) for op in (ToFixed, FromFixed)},
}
