"""Comparisons, truth values, bits, choices, and casts from one type to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, DType, Signature, Tensor
from baretorch.ops.elementwise import ORDERED, TYPE_NAMES, Binary, Elementwise, Unary, broadcast, kernel, loop_fields
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params

BOOL = (DType.BOOL,)
COMPARABLE = (*ORDERED, *BOOL)
SOURCE = "logic/ref.c"


class Comparison(Binary, source=SOURCE, types=COMPARABLE, result=DType.BOOL):
    """A truth value for each pair of elements. "Greater" is "less" with the inputs exchanged."""


class Eq(Comparison, name="eq", value=np.equal, aten="eq", onnx="Equal", tflite="EQUAL", tinygrad="eq"):
    """a == b."""


class Ne(Comparison, name="ne", value=np.not_equal, aten="ne", tflite="NOT_EQUAL", tinygrad="ne"):
    """a != b, which holds for NaN."""


class Lt(Comparison, name="lt", value=np.less, aten="lt", onnx="Less", tflite="LESS", tinygrad="__lt__"):
    """a < b."""


class Le(
    Comparison, name="le", value=np.less_equal, aten="le", onnx="LessOrEqual", tflite="LESS_EQUAL", tinygrad="__le__"
):
    """a <= b."""


class Logical(Binary, source=SOURCE, types=BOOL):
    """A truth value for each pair of truth values."""


class LogicalAnd(
    Logical, name="logical_and", value=np.logical_and, aten="logical_and", onnx="And", tflite="LOGICAL_AND"
):
    """Both of a and b."""


class LogicalOr(Logical, name="logical_or", value=np.logical_or, aten="logical_or", onnx="Or", tflite="LOGICAL_OR"):
    """One of a and b, or both."""


class LogicalNot(
    Unary,
    source=SOURCE,
    types=BOOL,
    name="logical_not",
    value=np.logical_not,
    aten="logical_not",
    onnx="Not",
    tflite="LOGICAL_NOT",
    tinygrad="logical_not",
):
    """The opposite of x."""


class Bitwise(Binary, source="bits/ref.c", types=(DType.INT8, DType.UINT8, DType.INT32, DType.INT64)):
    """An operator on the bits of each pair of integers."""


class BitAnd(Bitwise, name="bit_and", value=np.bitwise_and):
    """The bits that a and b both have."""


class BitOr(Bitwise, name="bit_or", value=np.bitwise_or):
    """The bits that a or b has."""


class BitXor(Bitwise, name="bit_xor", value=np.bitwise_xor):
    """The bits that one of a and b has, and not the other."""


@dataclass(frozen=True)
class ShiftLeft(Bitwise, name="shift_left"):
    """a moved b bits to the left; 0 for a negative b, and for one of as many bits as a has or more."""

    def value(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        return np.where(inside, np.left_shift(a, np.where(inside, b, b.dtype.type(0))), a.dtype.type(0))


@dataclass(frozen=True)
class ShiftRight(Bitwise, name="shift_right"):
    """a moved b bits to the right, keeping its sign; all bits are the sign if shift_left gives 0 for this b."""

    def value(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        sign = np.where(a < 0, -1, 0).astype(a.dtype)
        return np.where(inside, np.right_shift(a, np.where(inside, b, b.dtype.type(0))), sign)


@dataclass(frozen=True)
class Where(Elementwise, name="where", value=np.where, source=SOURCE, types=COMPARABLE):
    """a where the condition holds, elsewhere b."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(inputs[0].dtype is DType.BOOL, self, "the condition is not a truth value", inputs, "bool as first input")
        return (Signature(broadcast(self, inputs), self.common(inputs[1:])),)

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_where", loop_fields(call))


@dataclass(frozen=True)
class Cast(Unary, name="cast", source=SOURCE, types=tuple(TYPE_NAMES)):
    """x as another type. A float becomes an integer by rounding toward zero; what is too large becomes the nearest that
    is not, and NaN 0. Integers that are too large wrap. A truth value says whether x is not 0."""

    to: str

    @property
    def target(self) -> DType:
        dtype = DType.of(self.to)
        if dtype not in self.types:
            raise InternalError(f"cast to {self.to}")
        return dtype

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        self.common(inputs)
        return (Signature(inputs[0].shape, self.target),)

    def value(self, x: Array) -> Array:
        to = self.target.numpy
        if to.kind in "iu" and x.dtype.kind == "f":
            info = np.iinfo(to)
            whole = np.trunc(np.nan_to_num(x, nan=0.0))
            inside = np.where((whole >= info.min) & (whole <= info.max), whole, 0.0).astype(to)
            inside[whole >= float(info.max)] = info.max
            inside[whole < float(info.min)] = info.min
            return inside
        return np.asarray(x.astype(to))

    def params(self, call: Call[Any]) -> Params:
        return Params(self.struct, (("count", call.x.count),))

    @classmethod
    def kernels(cls) -> tuple[Kernel[Any], ...]:
        return tuple(_cast(x, y) for x in TYPE_NAMES for y in TYPE_NAMES if x is not y)


def _cast(x: DType, y: DType) -> Kernel[Any]:
    symbol = f"bt_cast_{TYPE_NAMES[x]}_{TYPE_NAMES[y]}_ref"
    return kernel(symbol, SOURCE, lambda call: call.x.dtype is x and call.y.dtype is y)


OPS: tuple[type[Elementwise], ...] = (
    *(Eq, Ne, Lt, Le),
    *(LogicalAnd, LogicalOr, LogicalNot),
    *(BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight),
    *(Where, Cast),
)
