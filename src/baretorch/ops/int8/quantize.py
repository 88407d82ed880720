"""quantize and dequantize: between float32 and int8, at the edges of an int8 model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Quant, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.int8 import arithmetic
from baretorch.targets.features import FPU_DSP, MVE, SOFT


@dataclass(frozen=True)
class Quantize(Op, name="quantize", computes=False):
    """float32 -> int8: x / scale + zero, half to even, limited to -128..127."""

    scale: float
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.FLOAT32, self, f"{x.dtype.label} cannot be quantized", inputs, "float32")
        return (Signature(x.shape, DType.INT8, Quant((self.scale,), (self.zero,))),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.quantize(inputs[0], self.scale, self.zero),)

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.from_first(self, inputs, axis, start, stop)


@dataclass(frozen=True)
class Dequantize(Op, name="dequantize", computes=False):
    """int8 -> float32: (x - zero) * scale."""

    scale: float
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.INT8, self, f"{x.dtype.label} is not quantized", inputs, "int8")
        return (Signature(x.shape, DType.FLOAT32),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (arithmetic.dequantize(inputs[0], self.scale, self.zero),)

    def permuted(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut.from_first(self, inputs, axis, start, stop)


def flat(call: Call[Any]) -> Call[Any]:
    """Of what quantizes, or the other way round, the same with all axes but the last in one: of an image whose channels
    come first there are only three."""
    if not isinstance(call.op, (Quantize, Dequantize)) or call.pitch or len(call.x.shape) < 3:
        return call

    def rows(t: Tensor) -> Tensor:
        return replace(t, shape=(prod(t.shape[:-1]), t.shape[-1]))

    return replace(call, inputs=(rows(call.x), *call.inputs[1:]), outputs=(rows(call.y),))


def _quantize(call: Call[Quantize]) -> Params:
    inverse = float(np.float32(1.0 / call.op.scale))
    return Params("bt_quantize", (("count", call.x.count), ("zero", call.op.zero), ("factor", inverse)))


def _dequantize(call: Call[Dequantize]) -> Params:
    scale = float(np.float32(call.op.scale))
    return Params("bt_quantize", (("count", call.x.count), ("zero", call.op.zero), ("factor", scale)))


def _moderate(call: Call[Quantize] | Call[Dequantize]) -> bool:
    """No subnormal number or overflow comes near."""
    return 2.0**-100 < call.op.scale < 2.0**100


QUANTIZE: tuple[Kernel[Quantize], ...] = (
    Kernel("bt_quantize_mve", "quantize/mve.c", _quantize, MVE, overlap=overlap.elementwise, splits=cut.outermost),
    Kernel("bt_quantize_fpu", "quantize/fpu.c", _quantize, FPU_DSP, overlap=overlap.elementwise, splits=cut.outermost),
    Kernel(
        "bt_quantize_soft",
        "quantize/soft.c",
        _quantize,
        needs=SOFT,
        fits=_moderate,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    ),
    Kernel("bt_quantize_ref", "quantize/ref.c", _quantize, overlap=overlap.elementwise, splits=cut.outermost),
)
DEQUANTIZE: tuple[Kernel[Dequantize], ...] = (
    Kernel("bt_dequantize_mve", "quantize/mve.c", _dequantize, MVE, overlap=overlap.elementwise, splits=cut.outermost),
    Kernel(
        "bt_dequantize_fpu", "quantize/fpu.c", _dequantize, FPU_DSP, overlap=overlap.elementwise, splits=cut.outermost
    ),
    Kernel(
        "bt_dequantize_soft",
        "quantize/soft.c",
        _dequantize,
        needs=SOFT,
        fits=_moderate,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    ),
    Kernel("bt_dequantize_ref", "quantize/ref.c", _dequantize, overlap=overlap.elementwise, splits=cut.outermost),
)
