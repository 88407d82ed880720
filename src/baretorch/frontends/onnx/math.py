"""Rows of the ONNX table: arithmetic, functions of one number, comparisons, bits, choices and casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import DTYPES, Lowering, named_operators
from baretorch.frontends.onnx.call import OnnxCall, apply_wide, is_float, need_float, widen
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.proto import graph_type, label_of
from baretorch.ir.graph import DType, Op
from baretorch.ops.elementwise import Add, Elementwise, Fmod, Maximum, Minimum, Mul, Pow, Remainder, TruncDivide, Unary
from baretorch.ops.functions import Rounding
from baretorch.ops.logic import BitAnd, BitOr, Bitwise, BitXor, Eq, Le, Lt, Ne, ShiftLeft, ShiftRight, Where

LARGEST_POWER = 64  # largest power of an integer, which becomes a product

# --- arithmetic -------------------------------------------------------------------------------------------


def sub(g: OnnxLowering, x: str, y: str) -> str:
    return cast(g, elementwise.sub(g, widen(g, x), widen(g, y)), g[x].dtype)


def div(g: OnnxLowering, x: str, y: str) -> str:
    """Lower a quotient. Integers are rounded toward zero."""
    return elementwise.div(g, x, y) if is_float(g, x) else apply_wide(g, TruncDivide(), x, y)


def mod(g: OnnxLowering, x: str, y: str, *, fmod: int = 0) -> str:
    """Lower a remainder, which has the divisor's sign, or with `fmod` the dividend's."""
    return apply_wide(g, Fmod() if fmod else Remainder(), x, y)


def pow_(g: OnnxLowering, x: str, y: str) -> str:
    """Lower a power. The result has the base's type. Integers are multiplied, so their exponent must be constant."""
    known = g[y].data
    if is_float(g, x):
        single = known is not None and known.size == 1 and known.ndim <= len(g.shape(x))
        if known is not None and single and float(known.reshape(())) in (1, 2, 3, 0.5, -0.5, -1):
            return elementwise.pow_(g, x, float(known.reshape(())))
        return g.b.add(Pow(), x, cast(g, y, DType.FLOAT32))
    if known is None or known.size != 1 or known.ndim > len(g.shape(x)):
        raise CompileError(
            "Pow: integers to a power that is not one constant are not supported",
            have=f"{g[x]}, {g[y]}",
            need="a constant exponent, or a base of float32",
        )
    power = float(known.reshape(()))
    if not 0 < power <= LARGEST_POWER or power != int(power):
        raise CompileError(
            f"Pow: integers to the power {power:g} are not supported", need=f"1 to {LARGEST_POWER}, a whole number"
        )
    return cast(g, _times_itself(g, widen(g, x), int(power)), g[x].dtype)


def _times_itself(g: Lowering, x: str, times: int) -> str:
    if times == 1:
        return x
    half = _times_itself(g, x, times // 2)
    square = g.b.add(Mul(), half, half)
    return g.b.add(Mul(), square, x) if times % 2 else square


def fold_operands(op: Op) -> Callable[[OnnxLowering, OnnxCall], str]:
    """Make a row that applies a binary operator to any number of inputs, from the first to the last."""

    def build(g: OnnxLowering, call: OnnxCall) -> str:
        names = [call.need(i) for i in range(len(call.inputs))]
        return reduce(lambda x, y: apply_wide(g, op, x, y), names)

    return build


def mean(g: OnnxLowering, call: OnnxCall) -> str:
    need_float(g, "Mean", call.need(0))
    count = len(call.inputs)
    return elementwise.div(g, fold_operands(Add())(g, call), float(count)) if count > 1 else call.need(0)


def clip(g: OnnxLowering, x: str, lo: str | None = None, hi: str | None = None) -> str:
    """Lower Clip. Constant limits are fused into the previous operator."""
    limits: list[str | float | None] = []
    for name in (lo, hi):
        data = None if name is None else g[name].data
        if name is not None and g[name].count != 1:
            raise CompileError("Clip: a limit is not a single number", have=str(g[name]))
        single = data is not None and is_float(g, x)
        limits.append(float(data.reshape(())) if data is not None and single else name and widen(g, name))
    return x if limits == [None, None] else cast(g, elementwise.clamp(g, widen(g, x), *limits), g[x].dtype)


def relu(g: OnnxLowering, x: str) -> str:
    return cast(g, elementwise.clamp(g, widen(g, x), 0), g[x].dtype)


# --- operators without attributes -------------------------------------------------------------------------


def plain(kind: type[Elementwise]) -> OnnxRow:
    """Return the row of an elementwise operator. Integers narrower than 32 bits are computed as int32."""
    op, count = kind(), 1 if issubclass(kind, Unary) else 2

    def build(g: OnnxLowering, call: OnnxCall) -> str:
        operands = [call.need(i) for i in range(count)]
        if isinstance(op, Rounding):
            return elementwise.round_floats(g, op, *operands)
        y = g.b.add(op, *(widen(g, x) for x in operands))
        return cast(g, y, op.result or g[operands[0]].dtype)

    return OnnxRow(build)


# --- truth values and bits --------------------------------------------------------------------------------


def isinf(g: OnnxLowering, x: str, *, detect_positive: int = 1, detect_negative: int = 1) -> str:
    need_float(g, "IsInf", x)
    if detect_positive and detect_negative:
        return elementwise.isinf(g, x)
    if not detect_positive and not detect_negative:
        return g.b.const("never", np.zeros(g.shape(x), np.bool_))
    return elementwise.compare(g, Eq(), x, inf if detect_positive else -inf)


def swap_operands(op: Lt | Le) -> OnnxRow:
    """Return the row of a comparison with its operands exchanged."""
    return row(lambda g, x, y: g.b.add(op, widen(g, y), widen(g, x)))


def _bits(g: Lowering, op: Bitwise, x: str, y: str) -> str:
    """Compute in int32 if the type has no kernel of its own. This is equivalent, because bits that are shifted out are
    cut off afterwards."""
    return g.b.add(op, x, y) if g[x].dtype in op.types else apply_wide(g, op, x, y)


def bit_shift(g: OnnxLowering, x: str, y: str, *, direction: str) -> str:
    return _bits(g, ShiftLeft() if direction == "LEFT" else ShiftRight(), x, y)


def bitwise_not(g: OnnxLowering, x: str) -> str:
    known = g[x].dtype in BitXor.types
    return elementwise.invert(g, x) if known else cast(g, elementwise.invert(g, widen(g, x)), g[x].dtype)


# --- casts ------------------------------------------------------------------------------------------------


def convert(g: Lowering, x: str, code: int) -> str:
    """Cast to a type by its number in ONNX's enumeration."""
    dtype = graph_type(code)
    if dtype is None:
        raise CompileError(f"Cast: the type {label_of(code)} is not supported", have=str(g[x]), need=DTYPES)
    return cast(g, x, dtype)


def bit_cast(g: OnnxLowering, x: str, *, to: int) -> str:
    """Keep the bits: for bytes, a cast that wraps."""
    dtype, bytes_ = graph_type(to), (DType.INT8, DType.UINT8)
    if dtype is g[x].dtype:
        return x
    if dtype in bytes_ and g[x].dtype in (*bytes_, DType.BOOL):
        return cast(g, x, dtype)
    raise CompileError(
        f"BitCast: the bits of {g[x].dtype.label} as {label_of(to)} are not supported",
        need="int8 and uint8",
        try_="Cast, which converts values",
    )


ROWS: dict[str, OnnxRow] = {
    **{name: plain(op) for name, op in named_operators(lambda names: names.onnx).items()},
    "Add": row(lambda g, x, y: apply_wide(g, Add(), x, y)),
    "Sub": row(sub),
    "Mul": row(lambda g, x, y: apply_wide(g, Mul(), x, y)),
    "Div": row(div),
    "Mod": row(mod),
    "Pow": row(pow_),
    "Sum": OnnxRow(fold_operands(Add())),
    "Mean": OnnxRow(mean),
    "Max": OnnxRow(fold_operands(Maximum())),
    "Min": OnnxRow(fold_operands(Minimum())),
    "Clip": row(clip),
    "Relu": row(relu),
    "Tan": row(elementwise.tan),
    "IsNaN": row(lambda g, x: elementwise.compare(g, Ne(), x, x)),
    "IsInf": row(isinf),
    "Greater": swap_operands(Lt()),
    "GreaterOrEqual": swap_operands(Le()),
    "Xor": row(lambda g, x, y: g.b.add(Ne(), x, y)),
    "BitwiseAnd": row(lambda g, x, y: _bits(g, BitAnd(), x, y)),
    "BitwiseOr": row(lambda g, x, y: _bits(g, BitOr(), x, y)),
    "BitwiseXor": row(lambda g, x, y: _bits(g, BitXor(), x, y)),
    "BitwiseNot": row(bitwise_not),
    "BitShift": row(bit_shift),
    "Where": row(lambda g, condition, x, y: cast(g, g.b.add(Where(), condition, widen(g, x), widen(g, y)), g[x].dtype)),
    "Cast": row(lambda g, x, *, to: convert(g, x, to)),
    "CastLike": row(lambda g, x, like: cast(g, x, g[like].dtype)),
    "BitCast": row(bit_cast),
}
