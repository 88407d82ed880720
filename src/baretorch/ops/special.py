"""Functions of one or two numbers that few models need: inverse trigonometric, hyperbolic, and error functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erf, erfc, exp, inf, log1p, nan, pi, sqrt
from typing import ClassVar

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Binary, Elementwise
from baretorch.ops.functions import Function
from baretorch.ops.helpers.names import FormatNames

SOURCE = "special/ref.c"


@dataclass(frozen=True)
class Exp2(Function):
    """2^x; results below the least normal number are 0."""

    name: ClassVar[str] = "exp2"
    names: ClassVar[FormatNames] = FormatNames(aten="exp2")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.exp2(x)


@dataclass(frozen=True)
class Log10(Function):
    """The logarithm of x to the base 10."""

    name: ClassVar[str] = "log10"
    names: ClassVar[FormatNames] = FormatNames(aten="log10")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.log10(x)


@dataclass(frozen=True)
class Asin(Function):
    """The arc sine of x; NaN outside of [-1, 1]."""

    name: ClassVar[str] = "asin"
    names: ClassVar[FormatNames] = FormatNames(aten="asin", onnx="Asin")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arcsin(x)


@dataclass(frozen=True)
class Acos(Function):
    """The arc cosine of x; NaN outside of [-1, 1]."""

    name: ClassVar[str] = "acos"
    names: ClassVar[FormatNames] = FormatNames(aten="acos", onnx="Acos")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arccos(x)


@dataclass(frozen=True)
class Atan(Function):
    """The arc tangent of x."""

    name: ClassVar[str] = "atan"
    names: ClassVar[FormatNames] = FormatNames(aten="atan", onnx="Atan")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arctan(x)


@dataclass(frozen=True)
class Sinh(Function):
    """The hyperbolic sine of x."""

    name: ClassVar[str] = "sinh"
    names: ClassVar[FormatNames] = FormatNames(aten="sinh", onnx="Sinh")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.sinh(x)


@dataclass(frozen=True)
class Cosh(Function):
    """The hyperbolic cosine of x."""

    name: ClassVar[str] = "cosh"
    names: ClassVar[FormatNames] = FormatNames(aten="cosh", onnx="Cosh")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.cosh(x)


@dataclass(frozen=True)
class Asinh(Function):
    """The inverse of the hyperbolic sine."""

    name: ClassVar[str] = "asinh"
    names: ClassVar[FormatNames] = FormatNames(aten="asinh", onnx="Asinh")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arcsinh(x)


@dataclass(frozen=True)
class Acosh(Function):
    """The inverse of the hyperbolic cosine; NaN below 1."""

    name: ClassVar[str] = "acosh"
    names: ClassVar[FormatNames] = FormatNames(aten="acosh", onnx="Acosh")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arccosh(x)


@dataclass(frozen=True)
class Atanh(Function):
    """The inverse of the hyperbolic tangent; NaN outside of [-1, 1]."""

    name: ClassVar[str] = "atanh"
    names: ClassVar[FormatNames] = FormatNames(aten="atanh", onnx="Atanh")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return np.arctanh(x)


@dataclass(frozen=True)
class Erfc(Function):
    """1 - erf(x), precise where it is small; results below the least normal number are 0."""

    name: ClassVar[str] = "erfc"
    names: ClassVar[FormatNames] = FormatNames(aten="erfc")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return each(erfc, x)


@dataclass(frozen=True)
class Erfcx(Function):
    """e^(x^2) erfc(x)."""

    name: ClassVar[str] = "erfcx"
    names: ClassVar[FormatNames] = FormatNames(aten="special_erfcx")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return erfcx_of(x)


@dataclass(frozen=True)
class Erfinv(Function):
    """The inverse of the error function; NaN outside of [-1, 1]."""

    name: ClassVar[str] = "erfinv"
    names: ClassVar[FormatNames] = FormatNames(aten="erfinv")
    source: ClassVar[str] = SOURCE

    def value(self, x: Array) -> Array:
        return erfinv_of(x)


@dataclass(frozen=True)
class Atan2(Binary):
    """The angle of the vector (b, a), from -pi to pi; signs of zeros count."""

    name: ClassVar[str] = "atan2"
    names: ClassVar[FormatNames] = FormatNames(aten="atan2", tflite="ATAN2")
    source: ClassVar[str] = SOURCE

    def value(self, a: Array, b: Array) -> Array:
        return np.arctan2(a, b)


@dataclass(frozen=True)
class Hypot(Binary):
    """sqrt(a^2 + b^2), which overflows only where the result does."""

    name: ClassVar[str] = "hypot"
    names: ClassVar[FormatNames] = FormatNames(aten="hypot")
    source: ClassVar[str] = SOURCE

    def value(self, a: Array, b: Array) -> Array:
        return np.hypot(a, b)


# --- what NumPy has not ------------------------------------------------------------------------------------


def each(function: Callable[[float], float], x: Array) -> Array:
    return np.array([function(v) for v in x.reshape(-1)], np.float64).reshape(x.shape)


def erfcx_of(x: Array) -> Array:
    def one(v: float) -> float:
        if v < -26.0:
            return inf
        if v < 26.0:
            return exp(v * v) * erfc(v)
        return (1.0 - (0.5 - 0.75 / (v * v)) / (v * v)) / (v * sqrt(pi))  # the next term is below 1e-8

    return each(one, x)


def erfinv_of(x: Array) -> Array:
    def one(v: float) -> float:
        a = abs(v)
        if not a < 1.0:
            return v * inf if a == 1.0 else nan
        low = log1p(-a * a)
        h = 2.0 / (pi * 0.147) + low / 2.0
        y = sqrt(sqrt(h * h - low / 0.147) - h)  # Winitzki's formula, and then Newton's method
        for _ in range(5):
            off = erfc(y) - (1.0 - a) if a > 0.5 else a - erf(y)
            y += off / (2.0 / sqrt(pi) * exp(-y * y))
        return float(np.copysign(y, v))

    return each(one, x)


OPS: tuple[type[Elementwise], ...] = (
    Exp2,
    Log10,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Erfc,
    Erfcx,
    Erfinv,
    Atan2,
    Hypot,
)
