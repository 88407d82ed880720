"""quantize and dequantize: between float32 and int8, at the edges of an int8 model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Quant, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.int8 import arithmetic
from baretorch.targets.features import FPU_DSP, MVE, SOFT


@dataclass(frozen=True)
class Quantize(Pointwise, name="quantize", computes=False):
    """float32 -> int8: x / scale + zero, half to even, limited to -128..127."""

    scale: float
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.FLOAT32, self, f"{x.dtype.label} cannot be quantized", inputs, "float32")
        return (Signature(x.shape, DType.INT8, Quant((self.scale,), (self.zero,))),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.quantize(inputs[0], self.scale, self.zero),)


@dataclass(frozen=True)
class Dequantize(Pointwise, name="dequantize", computes=False):
    """int8 -> float32: (x - zero) * scale."""

    scale: float
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.INT8, self, f"{x.dtype.label} is not quantized", inputs, "int8")
        return (Signature(x.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.dequantize(inputs[0], self.scale, self.zero),)


def flat(call: Call[Any]) -> Call[Any]:
    """Of what quantizes, or the other way round, the same with all axes but the last in one: of an image whose channels
    come first there are only three."""
    if not isinstance(call.op, (Quantize, Dequantize)) or call.pitch or len(call.x.shape) < 3:
        return call

    def rows(t: Tensor) -> Tensor:
        return replace(t, shape=(prod(t.shape[:-1]), t.shape[-1]))

    return replace(call, inputs=(rows(call.x), *call.inputs[1:]), outputs=(rows(call.y),))


def _quantize(call: Call[Quantize]) -> Params:
    return _params(call, 1.0 / call.op.scale)


def _dequantize(call: Call[Dequantize]) -> Params:
    return _params(call, call.op.scale)


def _params(call: Call[Any], factor: float) -> Params:
    return Params(
        "bt_quantize", (("count", call.x.count), ("zero", call.op.zero), ("factor", float(np.float32(factor))))
    )


def _moderate(call: Call[Any]) -> bool:
    """Return whether the scale is far from subnormal numbers and overflow."""
    return bool(2.0**-100 < call.op.scale < 2.0**100)


def _kernels(name: str, params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    ref = Kernel[Any](f"bt_{name}_ref", "quantize/ref.c", params, overlap=overlap.elementwise, splits=cut.outermost)
    soft = ref.for_cpu("soft", SOFT, fits=_moderate)
    return (ref.for_cpu("mve", MVE), ref.for_cpu("fpu", FPU_DSP), soft, ref)


QUANTIZE = _kernels("quantize", _quantize)
DEQUANTIZE = _kernels("dequantize", _dequantize)
