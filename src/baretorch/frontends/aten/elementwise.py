"""Rows of the ATen table: arithmetic, functions of one number, comparisons, choices and casts."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import cast, common_type, operand, promote, to_bool, to_float
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import DTYPES, Lowering, Scalar, named_operators
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import (
    FLOAT,
    Add,
    Clamp,
    Div,
    Elementwise,
    FloorDivide,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Sub,
    TruncDivide,
    Unary,
)
from baretorch.ops.fft import Magnitude
from baretorch.ops.functions import Abs, Cos, Log, Reciprocal, Round, Rounding, Rsqrt, Sin, Sqrt
from baretorch.ops.logic import (
    BOOL,
    BitAnd,
    BitOr,
    Bitwise,
    BitXor,
    Cast,
    Comparison,
    Eq,
    Le,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    Lt,
    Ne,
    ShiftLeft,
    ShiftRight,
    Where,
)

Operand = str | Scalar


# --- arithmetic -------------------------------------------------------------------------------------------


def add(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    x, y = promote(g, x, y)
    if g[x].dtype is DType.BOOL:
        return g.b.add(LogicalOr(), x, y)
    return g.b.add(Add(), x, _times(g, y, alpha))


def sub(g: Lowering, x: Operand, y: Operand, alpha: Scalar = 1) -> str:
    """Lower a difference. A constant is added, so that a pass can fold it into the layer before."""
    x, y = promote(g, x, y)
    if g[y].data is not None and g[y].dtype is not DType.UINT8:
        return g.b.add(Add(), x, _times(g, y, -alpha))
    return g.b.add(Sub(), x, _times(g, y, alpha))


def mul(g: Lowering, x: Operand, y: Operand) -> str:
    x, y = promote(g, x, y)
    return g.b.add(LogicalAnd() if g[x].dtype is DType.BOOL else Mul(), x, y)


def div(g: Lowering, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    """Lower a quotient. Division by a constant becomes multiplication by its reciprocal: one more rounding, a tenth of
    the time."""
    if rounding_mode is not None:
        return g.b.add(FloorDivide() if rounding_mode == "floor" else TruncDivide(), *promote(g, x, y))
    x, y = to_float(g, x, y)
    data = g[y].data
    if data is not None:
        with np.errstate(all="ignore"):
            reciprocal = (1.0 / data.astype(np.float64)).astype(np.float32)
        if np.all(np.isfinite(reciprocal) & (np.abs(reciprocal) >= np.finfo(np.float32).tiny)):
            return g.b.add(Mul(), x, g.b.const(f"{y}_reciprocal", reciprocal))
    return g.b.add(Div(), x, y)


def pow_(g: Lowering, x: Operand, y: Operand) -> str:
    if isinstance(x, str) and y in (1, 2, 3):
        (x,) = to_float(g, x) if isinstance(y, float) else (x,)
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
    return g.b.add(Pow(), *to_float(g, x, y))


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


def round_floats(g: Lowering, op: Rounding, x: str) -> str:
    return g.b.add(op, x) if g[x].dtype is DType.FLOAT32 else x


def round_(g: Lowering, x: str, decimals: int = 0) -> str:
    """Lower round. With decimals, x times a power of ten is rounded, in float32 as in PyTorch."""
    if not decimals or g[x].dtype is not DType.FLOAT32:
        return round_floats(g, Round(), x)
    power = operand(g, 10.0 ** abs(decimals), DType.FLOAT32)
    before, after = (Mul(), Div()) if decimals > 0 else (Div(), Mul())
    return g.b.add(after, g.b.add(Round(), g.b.add(before, x, power)), power)


def square(g: Lowering, x: str) -> str:
    return g.b.add(Mul(), x, x)


def tan(g: Lowering, x: str) -> str:
    (x,) = to_float(g, x)
    return g.b.add(Div(), g.b.add(Sin(), x), g.b.add(Cos(), x))


def logit(g: Lowering, x: str, eps: float | None = None) -> str:
    """Lower logit. Its limits are a clamp, because torch's own decomposition compares, which int8 can get wrong."""
    (x,) = to_float(g, x)
    if eps is not None and eps > 0.5:
        raise CompileError(f"logit: eps={eps} exceeds 0.5, so that its limits cross", need="eps of at most 0.5")
    if eps is not None and eps >= 0:
        x = clamp(g, x, float(eps), 1.0 - eps)
    return g.b.add(Log(), div(g, x, sub(g, 1.0, x)))


# --- truth values -----------------------------------------------------------------------------------------


def compare(g: Lowering, op: Comparison, x: Operand, y: Operand) -> str:
    dtype = common_type(g, (x, y))
    if dtype not in op.types:  # bytes
        dtype = DType.INT32
    return g.b.add(op, operand(g, x, dtype), operand(g, y, dtype))


def isinf(g: Lowering, x: str) -> str:
    return compare(g, Eq(), g.b.add(Abs(), *to_float(g, x)), inf)


def isfinite(g: Lowering, x: str) -> str:
    return compare(g, Lt(), g.b.add(Abs(), *to_float(g, x)), inf)


def where(g: Lowering, condition: str, x: Operand | None = None, y: Operand | None = None) -> str:
    if x is None or y is None:
        raise CompileError(
            "where with a condition alone is not supported: the size of its result depends on values",
            try_="torch.where(condition, a, b)",
        )
    return g.b.add(Where(), *to_bool(g, condition), *promote(g, x, y))


def masked_fill(g: Lowering, x: str, mask: str, value: Operand) -> str:
    return g.b.add(Where(), *to_bool(g, mask), operand(g, value, g[x].dtype), x)


# --- bits of integers; for booleans they are the logical operators ------------------------------------------


def bitwise(g: Lowering, integers: Bitwise, truths: Elementwise | None, *operands: Operand) -> str:
    dtype = common_type(g, operands)
    if dtype is DType.BOOL and truths is not None:
        return g.b.add(truths, *promote(g, *operands))
    if dtype not in integers.types:
        raise CompileError(
            f"{integers.name}: {dtype.label} is not supported",
            have=", ".join(str(g[x]) for x in operands if isinstance(x, str)),
            need=" or ".join(t.label for t in integers.types),
            try_="cast the tensors to torch.int32 in the model",
        )
    return g.b.add(integers, *promote(g, *operands))


def invert(g: Lowering, x: str) -> str:
    if g[x].dtype is DType.BOOL:
        return g.b.add(LogicalNot(), x)
    return bitwise(g, BitXor(), None, x, 255 if g[x].dtype is DType.UINT8 else -1)


# --- casts ------------------------------------------------------------------------------------------------


def to(g: Lowering, x: str, *args: Any) -> str:
    """Lower a cast to another type, or to the type of another tensor; device and memory format change nothing."""
    if args and isinstance(args[0], str) and args[0] in g.b.tensors:
        return cast(g, x, g[args[0]].dtype)
    for label in args:
        if isinstance(label, str) and label.startswith(("float", "bfloat", "int", "uint", "bool", "complex")):
            dtype = DType.of(label)
            if dtype is None:
                raise CompileError(f"a cast from {g[x].dtype.label} to {label} is not supported", need=DTYPES)
            return cast(g, x, dtype)
    return x


def with_pytorch_types(kind: type[Elementwise]) -> Callable[..., str]:
    """Return the row of an operator whose operands become one type as in PyTorch."""
    op = kind()
    if isinstance(op, Rounding):
        return lambda g, x: round_floats(g, op, x)
    if isinstance(op, Comparison):
        return lambda g, x, y: compare(g, op, x, y)
    convert = to_float if op.types == FLOAT else to_bool if op.types == BOOL else promote
    if isinstance(op, Unary):
        return lambda g, x: g.b.add(op, *convert(g, x))
    return lambda g, x, y: g.b.add(op, *convert(g, x, y))


ROWS: dict[str, AtenRow] = {
    **{f"aten::{n}": AtenRow(with_pytorch_types(op), (op,)) for n, op in named_operators(lambda n: n.aten).items()},
    **rows("add", add, Add, Mul, LogicalOr),
    **rows("sub", sub, Add, Sub, Mul),
    **rows("rsub", lambda g, x, y, alpha=1: sub(g, y, x, alpha), Add, Sub, Mul),
    **rows("mul", mul, Mul, LogicalAnd),
    **rows("div", div, Mul, Div, FloorDivide, TruncDivide, Magnitude),
    **rows("floor_divide", lambda g, x, y: div(g, x, y, "floor"), FloorDivide),
    **rows("pow", pow_, Mul, Pow, Sqrt, Rsqrt, Reciprocal),
    **rows("square", square, Mul),
    **rows("clamp", clamp, Clamp, Minimum, Maximum),
    **rows("clamp_min", lambda g, x, lo: clamp(g, x, lo), Clamp, Maximum),
    **rows("clamp_max", lambda g, x, hi: clamp(g, x, None, hi), Clamp, Minimum),
    **rows("relu", lambda g, x: clamp(g, x, 0), Clamp, Maximum),
    **rows("relu6", lambda g, x: clamp(g, x, 0, 6), Clamp, Minimum, Maximum),
    **rows("hardtanh", lambda g, x, lo=-1, hi=1: clamp(g, x, lo, hi), Clamp, Minimum, Maximum),
    **rows("abs", lambda g, x: g.b.add(Abs(), x), Abs, Magnitude),
    **rows("round", round_, Mul, Div, Round),
    **rows("tan", tan, Div, Sin, Cos),
    **rows("logit", logit, Clamp, Sub, Mul, Div, Log),
    **rows("gt", lambda g, x, y: compare(g, Lt(), y, x), Lt),
    **rows("ge", lambda g, x, y: compare(g, Le(), y, x), Le),
    **rows("isnan", lambda g, x: compare(g, Ne(), x, x), Ne),
    **rows("isinf", isinf, Abs, Eq),
    **rows("isfinite", isfinite, Abs, Lt),
    **rows("logical_xor", lambda g, x, y: g.b.add(Ne(), *to_bool(g, x, y)), Ne),
    **rows("where", where, Where),
    **rows("masked_fill", masked_fill, Where),
    **rows("type_as", to, Cast),
    **rows("bitwise_and __and__", lambda g, x, y: bitwise(g, BitAnd(), LogicalAnd(), x, y), LogicalAnd, BitAnd),
    **rows("bitwise_or __or__", lambda g, x, y: bitwise(g, BitOr(), LogicalOr(), x, y), LogicalOr, BitOr),
    **rows("bitwise_xor __xor__", lambda g, x, y: bitwise(g, BitXor(), Ne(), x, y), Ne, BitXor),
    **rows("bitwise_not", invert, LogicalNot, BitXor),
    **rows("bitwise_left_shift __lshift__", lambda g, x, y: bitwise(g, ShiftLeft(), None, x, y), ShiftLeft),
    **rows("bitwise_right_shift __rshift__", lambda g, x, y: bitwise(g, ShiftRight(), None, x, y), ShiftRight),
}
