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
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import DType, Op
from baretorch.ops.elementwise import Add, Elementwise, Fmod, Maximum, Minimum, Mul, Pow, Remainder, TruncDivide, Unary
from baretorch.ops.functions import Rounding
from baretorch.ops.logic import BitAnd, BitOr, Bitwise, BitXor, Eq, Le, Lt, Ne, ShiftLeft, ShiftRight, Where

LARGEST_POWER = 64  # of an integer: a product of that many factors at most

# --- arithmetic -------------------------------------------------------------------------------------------


def add(g: OnnxLowering, call: OnnxCall) -> str:
    return apply_wide(g, Add(), call.need(0), call.need(1))


def sub(g: OnnxLowering, call: OnnxCall) -> str:
    x, y = call.need(0), call.need(1)
    return cast(g, elementwise.sub(g, widen(g, x), widen(g, y)), g[x].dtype)


def mul(g: OnnxLowering, call: OnnxCall) -> str:
    return apply_wide(g, Mul(), call.need(0), call.need(1))


def div(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower a quotient. Integers are rounded toward zero."""
    x, y = call.need(0), call.need(1)
    return elementwise.div(g, x, y) if is_float(g, x) else apply_wide(g, TruncDivide(), x, y)


def mod(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower a remainder, which has the divisor's sign, or with `fmod` the dividend's."""
    x, y = call.need(0), call.need(1)
    return apply_wide(g, Fmod() if call.attribute("fmod", 0) else Remainder(), x, y)


def pow_(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower a power. The result has the base's type. Integers are multiplied, so their exponent must be constant."""
    x, y = call.need(0), call.need(1)
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


def clip(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower Clip. Constant limits are fused into the previous operator."""
    x = call.need(0)
    dtype = g[x].dtype
    limits: list[str | float | None] = []
    for i in (1, 2):
        name = call.input(i)
        data = None if name is None else g[name].data
        if name is not None and g[name].count != 1:
            raise CompileError("Clip: a limit is not a single number", have=str(g[name]))
        limits.append(name if name is None or data is None or not is_float(g, x) else float(data.reshape(())))
    lo, hi = (widen(g, t) if isinstance(t, str) else t for t in limits)
    if lo is None and hi is None:
        return x
    return cast(g, elementwise.clamp(g, widen(g, x), lo, hi), dtype)


def relu(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    return cast(g, elementwise.clamp(g, widen(g, x), 0), g[x].dtype)


# --- operators without attributes -------------------------------------------------------------------------


def plain(kind: type[Elementwise]) -> OnnxRow:
    """Return the row of an operator that computes small integers as int32."""
    op, count = kind(), 1 if issubclass(kind, Unary) else 2

    def build(g: OnnxLowering, call: OnnxCall) -> str:
        operands = [call.need(i) for i in range(count)]
        if isinstance(op, Rounding):
            return elementwise.rounded(g, op, *operands)
        y = g.b.add(op, *(widen(g, x) for x in operands))
        return cast(g, y, op.result or g[operands[0]].dtype)

    return OnnxRow(build)


# --- truth values and bits --------------------------------------------------------------------------------


def isinf(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    need_float(g, "IsInf", x)
    up, down = call.attribute("detect_positive", 1), call.attribute("detect_negative", 1)
    if up and down:
        return elementwise.isinf(g, x)
    if not up and not down:
        return g.b.const("never", np.zeros(g.shape(x), np.bool_))
    return elementwise.compared(g, Eq(), x, inf if up else -inf)


def swap_operands(op: Lt | Le) -> OnnxRow:
    """Return the row of a comparison with its operands exchanged."""
    return OnnxRow(lambda g, call: g.b.add(op, widen(g, call.need(1)), widen(g, call.need(0))))


def bitwise(op: Bitwise) -> Callable[[OnnxLowering, OnnxCall], str]:
    return lambda g, call: _bits(g, op, call.need(0), call.need(1))


def _bits(g: Lowering, op: Bitwise, x: str, y: str) -> str:
    """Compute in int32 if the type has no kernel of its own. This is equivalent, because bits that are shifted out are
    cut off afterwards."""
    return g.b.add(op, x, y) if g[x].dtype in op.types else apply_wide(g, op, x, y)


def bit_shift(g: OnnxLowering, call: OnnxCall) -> str:
    left = call.attribute("direction") == "LEFT"
    return _bits(g, ShiftLeft() if left else ShiftRight(), call.need(0), call.need(1))


def bitwise_not(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    return (
        elementwise.invert(g, x)
        if g[x].dtype in BitXor.types
        else cast(g, elementwise.invert(g, widen(g, x)), g[x].dtype)
    )


def where(g: OnnxLowering, call: OnnxCall) -> str:
    condition, x, y = (call.need(i) for i in range(3))
    return cast(g, g.b.add(Where(), condition, widen(g, x), widen(g, y)), g[x].dtype)


# --- casts ------------------------------------------------------------------------------------------------


def cast_to(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower Cast. `to` is a number of ONNX's enumeration of types."""
    return convert(g, call.need(0), int(call.attribute("to")))


def cast_like(g: OnnxLowering, call: OnnxCall) -> str:
    return cast(g, call.need(0), g[call.need(1)].dtype)


def convert(g: Lowering, x: str, code: int) -> str:
    dtype = TYPES.get(code)
    if dtype is None:
        raise CompileError(f"Cast: the type {NAMES.get(code, str(code))} is not supported", have=str(g[x]), need=DTYPES)
    return cast(g, x, dtype)


def bit_cast(g: OnnxLowering, call: OnnxCall) -> str:
    """Keep the bits: for bytes, a cast that wraps."""
    x = call.need(0)
    dtype = TYPES.get(int(call.attribute("to")))
    bytes_ = (DType.INT8, DType.UINT8)
    if dtype is g[x].dtype:
        return x
    if dtype in bytes_ and g[x].dtype in (*bytes_, DType.BOOL):
        return cast(g, x, dtype)
    raise CompileError(
        f"BitCast: the bits of {g[x].dtype.label} as {NAMES.get(int(call.attribute('to')), '?')} are not supported",
        need="int8 and uint8",
        try_="Cast, which converts values",
    )


# ONNX's enumeration of types, as far as the Graph has them; and what others are called.
TYPES = {1: DType.FLOAT32, 2: DType.UINT8, 3: DType.INT8, 5: DType.INT16, 6: DType.INT32, 7: DType.INT64, 9: DType.BOOL}
NAMES = {
    **{code: dtype.label for code, dtype in TYPES.items()},
    4: "uint16",
    8: "string",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}

ROWS: dict[str, OnnxRow] = {
    **{name: plain(op) for name, op in named_operators(lambda names: names.onnx).items()},
    "Add": OnnxRow(add),
    "Sub": OnnxRow(sub),
    "Mul": OnnxRow(mul),
    "Div": OnnxRow(div),
    "Mod": OnnxRow(mod),
    "Pow": OnnxRow(pow_),
    "Sum": OnnxRow(fold_operands(Add())),
    "Mean": OnnxRow(mean),
    "Max": OnnxRow(fold_operands(Maximum())),
    "Min": OnnxRow(fold_operands(Minimum())),
    "Clip": OnnxRow(clip),
    "Relu": OnnxRow(relu),
    "Tan": OnnxRow(lambda g, call: elementwise.tan(g, call.need(0))),
    "IsNaN": OnnxRow(lambda g, call: elementwise.compared(g, Ne(), call.need(0), call.need(0))),
    "IsInf": OnnxRow(isinf),
    "Greater": swap_operands(Lt()),
    "GreaterOrEqual": swap_operands(Le()),
    "Xor": OnnxRow(lambda g, call: g.b.add(Ne(), call.need(0), call.need(1))),
    "BitwiseAnd": OnnxRow(bitwise(BitAnd())),
    "BitwiseOr": OnnxRow(bitwise(BitOr())),
    "BitwiseXor": OnnxRow(bitwise(BitXor())),
    "BitwiseNot": OnnxRow(bitwise_not),
    "BitShift": OnnxRow(bit_shift),
    "Where": OnnxRow(where),
    "Cast": OnnxRow(cast_to),
    "CastLike": OnnxRow(cast_like),
    "BitCast": OnnxRow(bit_cast),
}
