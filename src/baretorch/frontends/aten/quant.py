"""Rows of the ATen table: the quantized_decomposed operators that pt2e writes around every int8 value."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering
from baretorch.ir.graph import Array, Quant
from baretorch.ops.int8.quantize import Dequantize, Quantize

# What is subtracted from a stored number to have it as int8. A `.pte` has PyTorch's numbers for the types.
OFFSETS = {"int8": 0, "uint8": 128, 1: 0, 0: 128}


def quantize_per_tensor(
    g: Lowering, x: str, scale: Any, zero: Any, lo: int, hi: int, dtype: str | int = "int8", *rest: Any
) -> str:
    offset = _offset("quantize_per_tensor", lo, hi, dtype)
    s, z = _scale(g, scale, zero, offset)
    data = g[x].data
    if data is None:
        return g.b.add(Quantize(s, z), x)
    return g.b.const(f"{x}_int8", Quantize(s, z).reference(data)[0])


def dequantize_per_tensor(
    g: Lowering, x: str, scale: Any, zero: Any, lo: int, hi: int, dtype: str | int = "int8", *rest: Any
) -> str:
    data = g[x].data
    if data is not None:
        return real(g, x, data, np.array([_number(g, scale)]), np.array([_number(g, zero)], np.int64), None)
    return g.b.add(Dequantize(*_scale(g, scale, zero, _offset("dequantize_per_tensor", lo, hi, dtype))), x)


def dequantize_per_channel(
    g: Lowering, x: str, scales: str, zeros: str | None, axis: int, lo: int, hi: int, *rest: Any
) -> str:
    """Return a weight's real values, annotated with the scales that they were rounded to."""
    data = g.constant(x, "dequantize_per_channel: the quantized weight")
    s = g.constant(scales, "dequantize_per_channel: scales").astype(np.float64)
    z = np.zeros(len(s), np.int64) if zeros is None else g.constant(zeros, "dequantize_per_channel: zero points")
    return real(g, x, data, s, z, axis % data.ndim)


def real(g: Lowering, x: str, data: Array, scales: Array, zeros: Array, axis: int | None) -> str:
    """Return a quantized constant's real values. Only int8 ones are annotated, because others are not weights of int8
    layers."""
    for s in scales:
        need_scale(float(s))
    column = [1] * data.ndim
    if axis is not None:
        column[axis] = -1
    real = (data.astype(np.float64) - zeros.reshape(column)) * scales.reshape(column)
    quant = Quant(tuple(map(float, scales)), tuple(map(int, zeros)), axis) if data.dtype == np.int8 else None
    return g.b.const(f"{x}_real", real.astype(np.float32), quant)


def _scale(g: Lowering, scale: Any, zero: Any, offset: int) -> tuple[float, int]:
    """Return scale and zero point of a tensor stored as int8."""
    s, z = _number(g, scale), int(_number(g, zero)) - offset
    need_scale(s)
    if not -128 <= z <= 127:
        raise CompileError(f"the zero point {z + offset} is outside of the stored type")
    return s, z


def need_scale(scale: float) -> None:
    if not (isfinite(scale) and 1e-30 < scale < 1e30):
        raise CompileError(f"{scale:g} cannot be a scale", need="a positive number of ordinary size")


def _number(g: Lowering, value: Any) -> float:
    """Return a scale or zero point: a Python number, or a constant tensor of one."""
    if isinstance(value, str):
        return float(g.constant(value, "a scale or zero point").reshape(-1)[0])
    return float(value)


def _offset(what: str, lo: int, hi: int, dtype: str | int) -> int:
    offset = OFFSETS.get(dtype)
    if offset is None or (lo - offset, hi - offset) not in ((-128, 127), (-127, 127)):
        raise CompileError(
            f"{what}: {dtype if isinstance(dtype, str) else f'type {dtype}'} from {lo} to {hi} is not supported",
            need="int8 activations from -128 to 127, or uint8 from 0 to 255",
            try_="quantize with `baretorch run --int8`, or a quantizer for int8",
        )
    return offset


ROWS: dict[str, AtenRow] = {
    "quantized_decomposed::quantize_per_tensor": AtenRow(quantize_per_tensor, (Quantize,)),
    "quantized_decomposed::dequantize_per_tensor": AtenRow(dequantize_per_tensor, (Dequantize,)),
    "quantized_decomposed::dequantize_per_channel": AtenRow(dequantize_per_channel),
}
