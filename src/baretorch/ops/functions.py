"""Functions of one number: exponentials and their kin, roots, roundings, signs."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf
from typing import ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType
from baretorch.ops.elementwise import NUMBERS, Elementwise, Unary
from baretorch.ops.helpers.names import FormatNames


@dataclass(frozen=True)
class Function(Unary):
    """A function of each element that has no attributes."""

    source: ClassVar[str] = "functions/ref.c"


@dataclass(frozen=True)
class Rounding(Function):
    """A function to whole numbers. Formats apply it to integers too, which it leaves as they are."""


@dataclass(frozen=True)
class Neg(Function):
    """-x; the least integer stays."""

    name: ClassVar[str] = "neg"
    names: ClassVar[FormatNames] = FormatNames(aten="neg", onnx="Neg", tflite="NEG", tinygrad="neg")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, x: Array) -> Array:
        return np.negative(x)


@dataclass(frozen=True)
class Abs(Function):
    """The absolute value of x; the least integer stays."""

    name: ClassVar[str] = "abs"
    names: ClassVar[FormatNames] = FormatNames(onnx="Abs", tflite="ABS", tinygrad="abs")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, x: Array) -> Array:
        return np.absolute(x)


@dataclass(frozen=True)
class Sign(Function):
    """-1, 0 or 1; of NaN 0, as in PyTorch."""

    name: ClassVar[str] = "sign"
    names: ClassVar[FormatNames] = FormatNames(aten="sign sgn", onnx="Sign", tflite="SIGN", tinygrad="sign")
    types: ClassVar[tuple[DType, ...]] = NUMBERS

    def value(self, x: Array) -> Array:
        return np.asarray((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype))


@dataclass(frozen=True)
class Floor(Rounding):
    """x rounded down."""

    name: ClassVar[str] = "floor"
    names: ClassVar[FormatNames] = FormatNames(aten="floor", onnx="Floor", tflite="FLOOR", tinygrad="floor")

    def value(self, x: Array) -> Array:
        return np.floor(x)


@dataclass(frozen=True)
class Ceil(Rounding):
    """x rounded up."""

    name: ClassVar[str] = "ceil"
    names: ClassVar[FormatNames] = FormatNames(aten="ceil", onnx="Ceil", tflite="CEIL", tinygrad="ceil")

    def value(self, x: Array) -> Array:
        return np.ceil(x)


@dataclass(frozen=True)
class Round(Rounding):
    """x rounded to the nearest whole number, halves to the even one."""

    name: ClassVar[str] = "round"
    names: ClassVar[FormatNames] = FormatNames(onnx="Round", tflite="ROUND", tinygrad="round")

    def value(self, x: Array) -> Array:
        return np.rint(x)


@dataclass(frozen=True)
class Trunc(Rounding):
    """x rounded toward zero."""

    name: ClassVar[str] = "trunc"
    names: ClassVar[FormatNames] = FormatNames(aten="trunc", tinygrad="trunc")

    def value(self, x: Array) -> Array:
        return np.trunc(x)


@dataclass(frozen=True)
class Sqrt(Function):
    """The square root of x, correctly rounded; NaN for negative x."""

    name: ClassVar[str] = "sqrt"
    names: ClassVar[FormatNames] = FormatNames(aten="sqrt", onnx="Sqrt", tflite="SQRT", tinygrad="sqrt")

    def value(self, x: Array) -> Array:
        return np.sqrt(x)


@dataclass(frozen=True)
class Rsqrt(Function):
    """1 / sqrt(x)."""

    name: ClassVar[str] = "rsqrt"
    names: ClassVar[FormatNames] = FormatNames(aten="rsqrt", tflite="RSQRT", tinygrad="rsqrt")

    def value(self, x: Array) -> Array:
        return np.asarray(1.0 / np.sqrt(x))


@dataclass(frozen=True)
class Reciprocal(Function):
    """1 / x."""

    name: ClassVar[str] = "reciprocal"
    names: ClassVar[FormatNames] = FormatNames(aten="reciprocal", onnx="Reciprocal", tinygrad="reciprocal")

    def value(self, x: Array) -> Array:
        return np.asarray(1.0 / x)


@dataclass(frozen=True)
class Exp(Function):
    """e^x; results below the least normal number are 0."""

    name: ClassVar[str] = "exp"
    names: ClassVar[FormatNames] = FormatNames(aten="exp", onnx="Exp", tflite="EXP", tinygrad="exp")

    def value(self, x: Array) -> Array:
        return np.exp(x)


@dataclass(frozen=True)
class Expm1(Function):
    """e^x - 1, precise near 0."""

    name: ClassVar[str] = "expm1"
    names: ClassVar[FormatNames] = FormatNames(aten="expm1")

    def value(self, x: Array) -> Array:
        return np.expm1(x)


@dataclass(frozen=True)
class Log(Function):
    """The natural logarithm of x."""

    name: ClassVar[str] = "log"
    names: ClassVar[FormatNames] = FormatNames(aten="log", onnx="Log", tflite="LOG", tinygrad="log")

    def value(self, x: Array) -> Array:
        return np.log(x)


@dataclass(frozen=True)
class Log1p(Function):
    """The natural logarithm of 1 + x, precise near 0."""

    name: ClassVar[str] = "log1p"
    names: ClassVar[FormatNames] = FormatNames(aten="log1p")

    def value(self, x: Array) -> Array:
        return np.log1p(x)


@dataclass(frozen=True)
class Log2(Function):
    """The logarithm of x to the base 2."""

    name: ClassVar[str] = "log2"
    names: ClassVar[FormatNames] = FormatNames(aten="log2", tinygrad="log2")

    def value(self, x: Array) -> Array:
        return np.log2(x)


@dataclass(frozen=True)
class Sin(Function):
    """The sine of x, however large."""

    name: ClassVar[str] = "sin"
    names: ClassVar[FormatNames] = FormatNames(aten="sin", onnx="Sin", tflite="SIN", tinygrad="sin")

    def value(self, x: Array) -> Array:
        return np.sin(x)


@dataclass(frozen=True)
class Cos(Function):
    """The cosine of x, however large."""

    name: ClassVar[str] = "cos"
    names: ClassVar[FormatNames] = FormatNames(aten="cos", onnx="Cos", tflite="COS", tinygrad="cos")

    def value(self, x: Array) -> Array:
        return np.cos(x)


@dataclass(frozen=True)
class Tanh(Function):
    """The hyperbolic tangent of each element."""

    name: ClassVar[str] = "tanh"
    names: ClassVar[FormatNames] = FormatNames(aten="tanh", onnx="Tanh", tflite="TANH", tinygrad="tanh")

    def value(self, x: Array) -> Array:
        return np.tanh(x)


@dataclass(frozen=True)
class Sigmoid(Function):
    """1 / (1 + e^-x) of each element."""

    name: ClassVar[str] = "sigmoid"
    names: ClassVar[FormatNames] = FormatNames(aten="sigmoid", onnx="Sigmoid", tflite="LOGISTIC", tinygrad="sigmoid")

    def value(self, x: Array) -> Array:
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


@dataclass(frozen=True)
class Erf(Function):
    """The error function of x."""

    name: ClassVar[str] = "erf"
    names: ClassVar[FormatNames] = FormatNames(aten="erf", onnx="Erf", tinygrad="erf")

    def value(self, x: Array) -> Array:
        return erf_of(x)


def erf_of(x: Array) -> Array:
    """The error function, which NumPy has not."""
    return np.array([erf(v) for v in x.reshape(-1)], np.float64).reshape(x.shape)


OPS: tuple[type[Elementwise], ...] = (
    Neg,
    Abs,
    Sign,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Exp,
    Expm1,
    Log,
    Log1p,
    Log2,
    Sin,
    Cos,
    Tanh,
    Sigmoid,
    Erf,
)
