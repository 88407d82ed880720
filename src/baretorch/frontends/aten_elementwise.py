"""Rows of the ATen table: arithmetic, functions of one number, comparisons, choices and casts."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering, Result, Scalar
from baretorch.frontends.promotion import cast, common_type, floating, operand, promoted, truths
from baretorch.ir import DType
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
    Rsqrt,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Tanh,
    Trunc,
)
from baretorch.ops.logic import Eq, Le, LogicalAnd, LogicalNot, LogicalOr, Lt, Ne, Where

Operand = str | Scalar


# --- arithmetic -------------------------------------------------------------------------------------------


def add(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    x, y = promoted(g, x, y)
    if g[x].dtype is DType.BOOL:
        return g.b.add(LogicalOr(), x, y)
    return g.b.add(Add(), x, _times(g, y, alpha))


def sub(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    """A constant is added, which a pass can fold into the layer before."""
    x, y = promoted(g, x, y)
    if g[y].data is not None:
        return g.b.add(Add(), x, _times(g, y, -alpha))
    return g.b.add(Sub(), x, _times(g, y, alpha))


def mul(g: Lowering, x: Operand, y: Operand) -> str:
    x, y = promoted(g, x, y)
    return g.b.add(LogicalAnd() if g[x].dtype is DType.BOOL else Mul(), x, y)


def div(g: Lowering, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    """Division by a constant is multiplication by its reciprocal, one more rounding and a tenth of the time."""
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
    """Limits that are tensors, or limits of integers, are maximum and minimum."""
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


def rounded(g: Lowering, op: Floor | Ceil | Trunc | Round, x: str) -> str:
    return g.b.add(op, x) if g[x].dtype is DType.FLOAT32 else x


def round_(g: Lowering, x: str, decimals: int = 0) -> str:
    """With decimals, x times a power of ten is rounded, in float32 as PyTorch does it."""
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


def compared(g: Lowering, op: Eq | Ne | Lt | Le, x: Operand, y: Operand) -> str:
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
    """A copy as another type, or the type of another tensor; device and memory format change nothing."""
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


ROWS: dict[str, Callable[..., Result]] = {
    "aten::add": add,
    "aten::sub": sub,
    "aten::rsub": lambda g, x, y, alpha=1: sub(g, y, x, alpha),
    "aten::mul": mul,
    "aten::div": div,
    "aten::floor_divide": lambda g, x, y: div(g, x, y, "floor"),
    "aten::remainder": lambda g, x, y: g.b.add(Remainder(), *promoted(g, x, y)),
    "aten::fmod": lambda g, x, y: g.b.add(Fmod(), *promoted(g, x, y)),
    "aten::pow": pow_,
    "aten::square": square,
    "aten::minimum": lambda g, x, y: g.b.add(Minimum(), *promoted(g, x, y)),
    "aten::maximum": lambda g, x, y: g.b.add(Maximum(), *promoted(g, x, y)),
    "aten::clamp": clamp,
    "aten::clamp_min": lambda g, x, lo: clamp(g, x, lo),
    "aten::clamp_max": lambda g, x, hi: clamp(g, x, None, hi),
    "aten::relu": lambda g, x: clamp(g, x, 0),
    "aten::relu6": lambda g, x: clamp(g, x, 0, 6),
    "aten::hardtanh": lambda g, x, lo=-1, hi=1: clamp(g, x, lo, hi),
    "aten::neg": lambda g, x: g.b.add(Neg(), x),
    "aten::abs": lambda g, x: g.b.add(Abs(), x),
    "aten::sign": lambda g, x: g.b.add(Sign(), x),
    "aten::sgn": lambda g, x: g.b.add(Sign(), x),
    "aten::floor": lambda g, x: rounded(g, Floor(), x),
    "aten::ceil": lambda g, x: rounded(g, Ceil(), x),
    "aten::trunc": lambda g, x: rounded(g, Trunc(), x),
    "aten::round": round_,
    "aten::sqrt": lambda g, x: g.b.add(Sqrt(), *floating(g, x)),
    "aten::rsqrt": lambda g, x: g.b.add(Rsqrt(), *floating(g, x)),
    "aten::reciprocal": lambda g, x: g.b.add(Reciprocal(), *floating(g, x)),
    "aten::exp": lambda g, x: g.b.add(Exp(), *floating(g, x)),
    "aten::expm1": lambda g, x: g.b.add(Expm1(), *floating(g, x)),
    "aten::log": lambda g, x: g.b.add(Log(), *floating(g, x)),
    "aten::log1p": lambda g, x: g.b.add(Log1p(), *floating(g, x)),
    "aten::log2": lambda g, x: g.b.add(Log2(), *floating(g, x)),
    "aten::sin": lambda g, x: g.b.add(Sin(), *floating(g, x)),
    "aten::cos": lambda g, x: g.b.add(Cos(), *floating(g, x)),
    "aten::tan": tan,
    "aten::tanh": lambda g, x: g.b.add(Tanh(), *floating(g, x)),
    "aten::sigmoid": lambda g, x: g.b.add(Sigmoid(), *floating(g, x)),
    "aten::erf": lambda g, x: g.b.add(Erf(), *floating(g, x)),
    "aten::eq": lambda g, x, y: compared(g, Eq(), x, y),
    "aten::ne": lambda g, x, y: compared(g, Ne(), x, y),
    "aten::lt": lambda g, x, y: compared(g, Lt(), x, y),
    "aten::le": lambda g, x, y: compared(g, Le(), x, y),
    "aten::gt": lambda g, x, y: compared(g, Lt(), y, x),
    "aten::ge": lambda g, x, y: compared(g, Le(), y, x),
    "aten::isnan": lambda g, x: compared(g, Ne(), x, x),
    "aten::isinf": isinf,
    "aten::isfinite": isfinite,
    "aten::logical_and": lambda g, x, y: g.b.add(LogicalAnd(), *truths(g, x, y)),
    "aten::logical_or": lambda g, x, y: g.b.add(LogicalOr(), *truths(g, x, y)),
    "aten::logical_xor": lambda g, x, y: g.b.add(Ne(), *truths(g, x, y)),
    "aten::logical_not": lambda g, x: g.b.add(LogicalNot(), *truths(g, x)),
    "aten::where": where,
    "aten::masked_fill": masked_fill,
    "aten::to": to,
    "aten::_to_copy": to,
    "aten::type_as": to,
}
