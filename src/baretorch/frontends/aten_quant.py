"""Rows of the ATen table: the quantized_decomposed operators that pt2e writes around every int8 value."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering
from baretorch.ir import Quant
from baretorch.ops.quantize import Dequantize, Quantize


def quantize_per_tensor(g: Lowering, x: str, scale: Any, zero: Any, lo: int, hi: int, dtype: str = "int8") -> str:
    _need_int8("quantize_per_tensor", lo, hi, dtype)
    return g.b.add(Quantize(_number(g, scale), int(_number(g, zero))), x)


def dequantize_per_tensor(g: Lowering, x: str, scale: Any, zero: Any, lo: int, hi: int, *rest: Any) -> str:
    s, z = _number(g, scale), int(_number(g, zero))
    data = g[x].data
    if data is None:
        return g.b.add(Dequantize(s, z), x)
    return g.b.const(f"{x}_real", ((data.astype(np.float64) - z) * s).astype(np.float32), Quant((s,), (z,)))


def dequantize_per_channel(
    g: Lowering, x: str, scales: str, zeros: str | None, axis: int, lo: int, hi: int, *rest: Any
) -> str:
    """A weight: its real values, with a note of the scales they were rounded to."""
    data = g.constant(x, "dequantize_per_channel: the quantized weight")
    s = g.constant(scales, "dequantize_per_channel: scales").astype(np.float64)
    z = np.zeros(len(s), np.int64) if zeros is None else g.constant(zeros, "dequantize_per_channel: zero points")
    column = [1] * data.ndim
    column[axis] = -1
    real = (data.astype(np.float64) - z.reshape(column)) * s.reshape(column)
    quant = Quant(tuple(map(float, s)), tuple(map(int, z)), axis)
    return g.b.const(f"{x}_real", real.astype(np.float32), quant)


def _number(g: Lowering, value: Any) -> float:
    """A scale or zero point: a Python number, or a constant tensor of one."""
    if isinstance(value, str):
        return float(g.constant(value, "a scale or zero point").reshape(-1)[0])
    return float(value)


def _need_int8(what: str, lo: int, hi: int, dtype: str) -> None:
    if (lo, hi) not in ((-128, 127), (-127, 127)) or dtype not in ("int8", "torch.int8"):
        raise CompileError(
            f"{what}: {dtype} from {lo} to {hi} is not supported",
            need="int8 activations from -128 to 127",
            try_="quantize with `baretorch run --int8`, or a quantizer for int8",
        )
