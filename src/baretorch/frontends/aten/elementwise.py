"""Rows of the ATen table: arithmetic, functions of one number, comparisons, choices and casts."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast, common_type, floating, operand, promoted, truths
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import (
    Add,
    Clamp,
    Div,
    FloorDivide,
    Fmod,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Remainder,
    Sub,
    TruncDivide,
)
from baretorch.ops.fft import Magnitude
from baretorch.ops.functions import (
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Expm1,
    Floor,
    Log,
    Log1p,
    Log2,
    Neg,
    Reciprocal,
    Round,
    Rounding,
    Rsqrt,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Tanh,
    Trunc,
)
from baretorch.ops.logic import Cast, Comparison, Eq, Le, LogicalAnd, LogicalNot, LogicalOr, Lt, Ne, Where

Operand = str | Scalar


# --- arithmetic -------------------------------------------------------------------------------------------


def add(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    x, y = promoted(g, x, y)
    if g[x].dtype is DType.BOOL:
        return g.b.add(LogicalOr(), x, y)
    return g.b.add(Add(), x, _times(g, y, alpha))


def sub(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    """Lower a difference. A constant is added, so that a pass can fold it into the layer before."""
    x, y = promoted(g, x, y)
    if g[y].data is not None and g[y].dtype is not DType.UINT8:
        return g.b.add(Add(), x, _times(g, y, -alpha))
    return g.b.add(Sub(), x, _times(g, y, alpha))


def mul(g: Lowering, x: Operand, y: Operand) -> str:
    x, y = promoted(g, x, y)
    return g.b.add(LogicalAnd() if g[x].dtype is DType.BOOL else Mul(), x, y)


def div(g: Lowering, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    """Lower a quotient. Division by a constant becomes multiplication by its reciprocal: one more rounding, a tenth of
    the time."""
    if rounding_mode is not None:
        return g.b.add(FloorDivide() if rounding_mode == "floor" else TruncDivide(), *promoted(g, x, y))
    x, y = floating(g, x, y)
    data = g[y].data
    if data is not None:
        with np.errstate(all="ignore"):
            reciprocal = (1.0 / data.astype(np.float64)).astype(np.float32)
        if np.all(np.isfinite(reciprocal) & (np.abs(reciprocal) >= np.finfo(np.float32).tiny)):
            return g.b.add(Mul(), x, g.b.const(f"{y}_reciprocal", reciprocal))
    return g.b.add(Div(), x, y)


def pow_(g: Lowering, x: Operand, y: Operand) -> str:
    if isinstance(x, str) and y in (1, 2, 3):
        (x,) = floating(g, x) if isinstance(y, float) else (x,)
        square = x if y == 1 else g.b.add(Mul(), x, x)
        return square if y != 3 else g.b.add(Mul(), square, x)
    if common_type(g, (x, y)) is not DType.FLOAT32:
        raise CompileError(
            f"pow: integers to the power {y if not isinstance(y, str) else g[y]} are not supported",
            need="an exponent of 1, 2 or 3, or float32",
            try_="cast the tensor with .float() in the model",
        )
    if isinstance(x, str) and y in (0.5, -0.5, -1):
        return g.b.add(Sqrt() if y == 0.5 else Rsqrt() if y == -0.5 else Reciprocal(), x)
    return g.b.add(Pow(), *floating(g, x, y))


def clamp(g: Lowering, x: str, lo: Operand | None = None, hi: Operand | None = None) -> str:
    """Lower a clamp. Limits that are tensors, or limits of integers, become maximum and minimum."""
    given = [limit for limit in (lo, hi) if limit is not None]
    dtype = common_type(g, (x, *given))
    x = cast(g, x, dtype)
    if dtype is DType.FLOAT32 and not any(isinstance(limit, str) for limit in given):
        return g.b.add(Clamp(-inf if lo is None else float(lo), inf if hi is None else float(hi)), x)
    if lo is not None:
        x = g.b.add(Maximum(), x, operand(g, lo, dtype))
    return x if hi is None else g.b.add(Minimum(), x, operand(g, hi, dtype))


def _times(g: Lowering, x: str, factor: Scalar) -> str:
    return x if factor == 1 else g.b.add(Mul(), x, operand(g, factor, g[x].dtype))


# --- functions of one number ------------------------------------------------------------------------------


def rounded(g: Lowering, op: Rounding, x: str) -> str:
    return g.b.add(op, x) if g[x].dtype is DType.FLOAT32 else x


def round_(g: Lowering, x: str, decimals: int = 0) -> str:
    """Lower round. With decimals, x times a power of ten is rounded, in float32 as in PyTorch."""
    if not decimals or g[x].dtype is not DType.FLOAT32:
        return rounded(g, Round(), x)
    power = operand(g, 10.0 ** abs(decimals), DType.FLOAT32)
    before, after = (Mul(), Div()) if decimals > 0 else (Div(), Mul())
    return g.b.add(after, g.b.add(Round(), g.b.add(before, x, power)), power)


def square(g: Lowering, x: str) -> str:
    return g.b.add(Mul(), x, x)


def tan(g: Lowering, x: str) -> str:
    (x,) = floating(g, x)
    return g.b.add(Div(), g.b.add(Sin(), x), g.b.add(Cos(), x))


# --- truth values -----------------------------------------------------------------------------------------


def compared(g: Lowering, op: Comparison, x: Operand, y: Operand) -> str:
    dtype = common_type(g, (x, y))
    if dtype not in op.types:  # bytes
        dtype = DType.INT32
    return g.b.add(op, operand(g, x, dtype), operand(g, y, dtype))


def isinf(g: Lowering, x: str) -> str:
    return compared(g, Eq(), g.b.add(Abs(), *floating(g, x)), inf)


def isfinite(g: Lowering, x: str) -> str:
    return compared(g, Lt(), g.b.add(Abs(), *floating(g, x)), inf)


def where(g: Lowering, condition: str, x: Operand | None = None, y: Operand | None = None) -> str:
    if x is None or y is None:
        raise CompileError(
            "where with a condition alone is not supported: the size of its result depends on values",
            try_="torch.where(condition, a, b)",
        )
    return g.b.add(Where(), *truths(g, condition), *promoted(g, x, y))


def masked_fill(g: Lowering, x: str, mask: str, value: Operand) -> str:
    return g.b.add(Where(), *truths(g, mask), operand(g, value, g[x].dtype), x)


# --- casts ------------------------------------------------------------------------------------------------


def to(g: Lowering, x: str, *args: Any) -> str:
    """Lower a cast to another type, or to the type of another tensor; device and memory format change nothing."""
    if args and isinstance(args[0], str) and args[0] in g.b.tensors:
        return cast(g, x, g[args[0]].dtype)
    for label in args:
        if isinstance(label, str) and label.startswith(("float", "bfloat", "int", "uint", "bool", "complex")):
            dtype = DType.of(label)
            if dtype is None:
                raise CompileError(
                    f"a cast from {g[x].dtype.label} to {label} is not supported",
                    need=f"one of {', '.join(d.label for d in DType)}",
                )
            return cast(g, x, dtype)
    return x


ROWS: dict[str, AtenRow] = {
    "aten::add": AtenRow(add, (Add, Mul, LogicalOr)),
    "aten::sub": AtenRow(sub, (Add, Sub, Mul)),
    "aten::rsub": AtenRow(lambda g, x, y, alpha=1: sub(g, y, x, alpha), (Add, Sub, Mul)),
    "aten::mul": AtenRow(mul, (Mul, LogicalAnd)),
    "aten::div": AtenRow(div, (Mul, Div, FloorDivide, TruncDivide, Magnitude)),
    "aten::floor_divide": AtenRow(lambda g, x, y: div(g, x, y, "floor"), (FloorDivide,)),
    "aten::remainder": AtenRow(lambda g, x, y: g.b.add(Remainder(), *promoted(g, x, y)), (Remainder,)),
    "aten::fmod": AtenRow(lambda g, x, y: g.b.add(Fmod(), *promoted(g, x, y)), (Fmod,)),
    "aten::pow": AtenRow(pow_, (Mul, Pow, Sqrt, Rsqrt, Reciprocal)),
    "aten::square": AtenRow(square, (Mul,)),
    "aten::minimum": AtenRow(lambda g, x, y: g.b.add(Minimum(), *promoted(g, x, y)), (Minimum,)),
    "aten::maximum": AtenRow(lambda g, x, y: g.b.add(Maximum(), *promoted(g, x, y)), (Maximum,)),
    "aten::clamp": AtenRow(clamp, (Clamp, Minimum, Maximum)),
    "aten::clamp_min": AtenRow(lambda g, x, lo: clamp(g, x, lo), (Clamp, Maximum)),
    "aten::clamp_max": AtenRow(lambda g, x, hi: clamp(g, x, None, hi), (Clamp, Minimum)),
    "aten::relu": AtenRow(lambda g, x: clamp(g, x, 0), (Clamp, Maximum)),
    "aten::relu6": AtenRow(lambda g, x: clamp(g, x, 0, 6), (Clamp, Minimum, Maximum)),
    "aten::hardtanh": AtenRow(lambda g, x, lo=-1, hi=1: clamp(g, x, lo, hi), (Clamp, Minimum, Maximum)),
    "aten::neg": AtenRow(lambda g, x: g.b.add(Neg(), x), (Neg,)),
    "aten::abs": AtenRow(lambda g, x: g.b.add(Abs(), x), (Abs, Magnitude)),
    "aten::sign": AtenRow(lambda g, x: g.b.add(Sign(), x), (Sign,)),
    "aten::sgn": AtenRow(lambda g, x: g.b.add(Sign(), x), (Sign,)),
    "aten::floor": AtenRow(lambda g, x: rounded(g, Floor(), x), (Floor,)),
    "aten::ceil": AtenRow(lambda g, x: rounded(g, Ceil(), x), (Ceil,)),
    "aten::trunc": AtenRow(lambda g, x: rounded(g, Trunc(), x), (Trunc,)),
    "aten::round": AtenRow(round_, (Mul, Div, Round)),
    "aten::sqrt": AtenRow(lambda g, x: g.b.add(Sqrt(), *floating(g, x)), (Sqrt,)),
    "aten::rsqrt": AtenRow(lambda g, x: g.b.add(Rsqrt(), *floating(g, x)), (Rsqrt,)),
    "aten::reciprocal": AtenRow(lambda g, x: g.b.add(Reciprocal(), *floating(g, x)), (Reciprocal,)),
    "aten::exp": AtenRow(lambda g, x: g.b.add(Exp(), *floating(g, x)), (Exp,)),
    "aten::expm1": AtenRow(lambda g, x: g.b.add(Expm1(), *floating(g, x)), (Expm1,)),
    "aten::log": AtenRow(lambda g, x: g.b.add(Log(), *floating(g, x)), (Log,)),
    "aten::log1p": AtenRow(lambda g, x: g.b.add(Log1p(), *floating(g, x)), (Log1p,)),
    "aten::log2": AtenRow(lambda g, x: g.b.add(Log2(), *floating(g, x)), (Log2,)),
    "aten::sin": AtenRow(lambda g, x: g.b.add(Sin(), *floating(g, x)), (Sin,)),
    "aten::cos": AtenRow(lambda g, x: g.b.add(Cos(), *floating(g, x)), (Cos,)),
    "aten::tan": AtenRow(tan, (Div, Sin, Cos)),
    "aten::tanh": AtenRow(lambda g, x: g.b.add(Tanh(), *floating(g, x)), (Tanh,)),
    "aten::sigmoid": AtenRow(lambda g, x: g.b.add(Sigmoid(), *floating(g, x)), (Sigmoid,)),
    "aten::erf": AtenRow(lambda g, x: g.b.add(Erf(), *floating(g, x)), (Erf,)),
    "aten::eq": AtenRow(lambda g, x, y: compared(g, Eq(), x, y), (Eq,)),
    "aten::ne": AtenRow(lambda g, x, y: compared(g, Ne(), x, y), (Ne,)),
    "aten::lt": AtenRow(lambda g, x, y: compared(g, Lt(), x, y), (Lt,)),
    "aten::le": AtenRow(lambda g, x, y: compared(g, Le(), x, y), (Le,)),
    "aten::gt": AtenRow(lambda g, x, y: compared(g, Lt(), y, x), (Lt,)),
    "aten::ge": AtenRow(lambda g, x, y: compared(g, Le(), y, x), (Le,)),
    "aten::isnan": AtenRow(lambda g, x: compared(g, Ne(), x, x), (Ne,)),
    "aten::isinf": AtenRow(isinf, (Abs, Eq)),
    "aten::isfinite": AtenRow(isfinite, (Abs, Lt)),
    "aten::logical_and": AtenRow(lambda g, x, y: g.b.add(LogicalAnd(), *truths(g, x, y)), (LogicalAnd,)),
    "aten::logical_or": AtenRow(lambda g, x, y: g.b.add(LogicalOr(), *truths(g, x, y)), (LogicalOr,)),
    "aten::logical_xor": AtenRow(lambda g, x, y: g.b.add(Ne(), *truths(g, x, y)), (Ne,)),
    "aten::logical_not": AtenRow(lambda g, x: g.b.add(LogicalNot(), *truths(g, x)), (LogicalNot,)),
    "aten::where": AtenRow(where, (Where,)),
    "aten::masked_fill": AtenRow(masked_fill, (Where,)),
    "aten::type_as": AtenRow(to, (Cast,)),
}
