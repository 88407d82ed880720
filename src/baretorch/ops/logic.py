"""Comparisons, truth values, choices, and casts from one type to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, DType, Signature, Tensor
from baretorch.ops import elementwise
from baretorch.ops.elementwise import (
    NUMBERS,
    TYPE_NAMES,
    Binary,
    Elementwise,
    Unary,
    broadcast,
    loop_fields,
)
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.names import FormatNames

BOOL = (DType.BOOL,)
SOURCE = "logic/ref.c"


@dataclass(frozen=True)
class Comparison(Binary):
    """A truth value from each pair of elements. What is greater is less the other way round."""

    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = (*NUMBERS, DType.INT8, DType.BOOL)
    result: ClassVar[DType | None] = DType.BOOL


@dataclass(frozen=True)
class Eq(Comparison):
    """a == b."""

    name: ClassVar[str] = "eq"
    names: ClassVar[FormatNames] = FormatNames(aten="eq", onnx="Equal", tflite="EQUAL", tinygrad="eq")

    def value(self, a: Array, b: Array) -> Array:
        return np.equal(a, b)


@dataclass(frozen=True)
class Ne(Comparison):
    """a != b, which holds for NaN."""

    name: ClassVar[str] = "ne"
    names: ClassVar[FormatNames] = FormatNames(aten="ne", tflite="NOT_EQUAL", tinygrad="ne")

    def value(self, a: Array, b: Array) -> Array:
        return np.not_equal(a, b)


@dataclass(frozen=True)
class Lt(Comparison):
    """a < b."""

    name: ClassVar[str] = "lt"
    names: ClassVar[FormatNames] = FormatNames(aten="lt", onnx="Less", tflite="LESS", tinygrad="__lt__")

    def value(self, a: Array, b: Array) -> Array:
        return np.less(a, b)


@dataclass(frozen=True)
class Le(Comparison):
    """a <= b."""

    name: ClassVar[str] = "le"
    names: ClassVar[FormatNames] = FormatNames(aten="le", onnx="LessOrEqual", tflite="LESS_EQUAL", tinygrad="__le__")

    def value(self, a: Array, b: Array) -> Array:
        return np.less_equal(a, b)


@dataclass(frozen=True)
class LogicalAnd(Binary):
    """Both of a and b."""

    name: ClassVar[str] = "logical_and"
    names: ClassVar[FormatNames] = FormatNames(aten="logical_and", onnx="And", tflite="LOGICAL_AND")
    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = BOOL

    def value(self, a: Array, b: Array) -> Array:
        return np.logical_and(a, b)


@dataclass(frozen=True)
class LogicalOr(Binary):
    """One of a and b, or both."""

    name: ClassVar[str] = "logical_or"
    names: ClassVar[FormatNames] = FormatNames(aten="logical_or", onnx="Or", tflite="LOGICAL_OR")
    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = BOOL

    def value(self, a: Array, b: Array) -> Array:
        return np.logical_or(a, b)


@dataclass(frozen=True)
class LogicalNot(Unary):
    """Not x."""

    name: ClassVar[str] = "logical_not"
    names: ClassVar[FormatNames] = FormatNames(
        aten="logical_not", onnx="Not", tflite="LOGICAL_NOT", tinygrad="logical_not"
    )
    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = BOOL

    def value(self, x: Array) -> Array:
        return np.logical_not(x)


@dataclass(frozen=True)
class Where(Elementwise):
    """Where the condition holds a, elsewhere b."""

    name: ClassVar[str] = "where"
    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = (*NUMBERS, DType.INT8, DType.BOOL)

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(inputs[0].dtype is DType.BOOL, self, "the condition is not a truth value", inputs, "bool as first input")
        return (Signature(broadcast(self, inputs), self.common(inputs[1:])),)

    @property
    def meaning(self) -> Callable[..., Array]:
        return np.where

    def params(self, call: Call[Any]) -> Params:
        return Params("bt_where", loop_fields(call))


@dataclass(frozen=True)
class Cast(Unary):
    """x as another type. A float becomes an integer by rounding toward zero; what is too large becomes the nearest that
    is not, and NaN 0. Integers that are too large wrap. A truth value says whether x is not 0."""

    name: ClassVar[str] = "cast"
    source: ClassVar[str] = SOURCE
    types: ClassVar[tuple[DType, ...]] = tuple(TYPE_NAMES)
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


def kernels(op: type[Elementwise]) -> tuple[Kernel[Any], ...]:
    return CASTS if op is Cast else elementwise.kernels(op)


def _cast(x: DType, y: DType) -> Kernel[Any]:
    symbol = f"bt_cast_{TYPE_NAMES[x]}_{TYPE_NAMES[y]}_ref"
    return Kernel(
        symbol,
        SOURCE,
        lambda call: call.op.params(call),
        fits=lambda call: call.x.dtype is x and call.y.dtype is y,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    )


CASTS = tuple(_cast(x, y) for x in TYPE_NAMES for y in TYPE_NAMES if x is not y)

OPS: tuple[type[Elementwise], ...] = (Eq, Ne, Lt, Le, LogicalAnd, LogicalOr, LogicalNot, Where, Cast)
