"""Functions of numbers: exponentials and their kin, roots, roundings, signs, and some of two numbers."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, erfc, exp, inf, log1p, nan, pi, sqrt

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.elementwise import NUMBERS, Binary, Elementwise, Unary

SPECIAL = "special/ref.c"


class Function(Unary, source="functions/ref.c"):
    """A function of each element that has no attributes."""


class Rounding(Function):
    """A function to whole numbers. Formats apply it to integers too, which it leaves as they are."""


class Special(Function, source=SPECIAL):
    """A function that few models need."""


# --- functions that NumPy does not have -------------------------------------------------------------------


def each(function: Callable[[float], float], x: Array) -> Array:
    """Apply a function of one number to each element."""
    return np.array([function(v) for v in x.reshape(-1)], np.float64).reshape(x.shape)


def erf_of(x: Array) -> Array:
    return each(erf, x)


def erfc_of(x: Array) -> Array:
    return each(erfc, x)


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


# --- operators ---------------------------------------------------------------------------------------------


class Neg(Function, name="neg", value=np.negative, aten="neg", onnx="Neg", tflite="NEG", tinygrad="neg", types=NUMBERS):
    """-x; the least integer stays."""


class Abs(Function, name="abs", value=np.absolute, onnx="Abs", tflite="ABS", tinygrad="abs", types=NUMBERS):
    """The absolute value of x; the least integer stays."""


class Sign(
    Function,
    name="sign",
    value=lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype),
    aten="sign sgn",
    onnx="Sign",
    tflite="SIGN",
    tinygrad="sign",
    types=NUMBERS,
):
    """-1, 0 or 1; 0 for NaN, as in PyTorch."""


class Floor(Rounding, name="floor", value=np.floor, aten="floor", onnx="Floor", tflite="FLOOR", tinygrad="floor"):
    """x rounded down."""


class Ceil(Rounding, name="ceil", value=np.ceil, aten="ceil", onnx="Ceil", tflite="CEIL", tinygrad="ceil"):
    """x rounded up."""


class Round(Rounding, name="round", value=np.rint, onnx="Round", tflite="ROUND", tinygrad="round"):
    """x rounded to the nearest whole number, halves to the even one."""


class Trunc(Rounding, name="trunc", value=np.trunc, aten="trunc", tinygrad="trunc"):
    """x rounded toward zero."""


class Sqrt(Function, name="sqrt", value=np.sqrt, aten="sqrt", onnx="Sqrt", tflite="SQRT", tinygrad="sqrt"):
    """The square root of x, correctly rounded; NaN for negative x."""


class Rsqrt(Function, name="rsqrt", value=lambda x: 1.0 / np.sqrt(x), aten="rsqrt", tflite="RSQRT", tinygrad="rsqrt"):
    """1 / sqrt(x)."""


class Reciprocal(
    Function, name="reciprocal", value=lambda x: 1.0 / x, aten="reciprocal", onnx="Reciprocal", tinygrad="reciprocal"
):
    """1 / x."""


class Exp(Function, name="exp", value=np.exp, aten="exp", onnx="Exp", tflite="EXP", tinygrad="exp"):
    """e^x; results below the least normal number are 0."""


class Expm1(Function, name="expm1", value=np.expm1, aten="expm1"):
    """e^x - 1, precise near 0."""


class Log(Function, name="log", value=np.log, aten="log", onnx="Log", tflite="LOG", tinygrad="log"):
    """The natural logarithm of x."""


class Log1p(Function, name="log1p", value=np.log1p, aten="log1p"):
    """The natural logarithm of 1 + x, precise near 0."""


class Log2(Function, name="log2", value=np.log2, aten="log2", tinygrad="log2"):
    """The logarithm of x to the base 2."""


class Sin(Function, name="sin", value=np.sin, aten="sin", onnx="Sin", tflite="SIN", tinygrad="sin"):
    """The sine of x, however large."""


class Cos(Function, name="cos", value=np.cos, aten="cos", onnx="Cos", tflite="COS", tinygrad="cos"):
    """The cosine of x, however large."""


class Tanh(Function, name="tanh", value=np.tanh, aten="tanh", onnx="Tanh", tflite="TANH", tinygrad="tanh"):
    """The hyperbolic tangent of each element."""


class Sigmoid(
    Function,
    name="sigmoid",
    value=lambda x: 1.0 / (1.0 + np.exp(-x)),
    aten="sigmoid",
    onnx="Sigmoid",
    tflite="LOGISTIC",
    tinygrad="sigmoid",
):
    """1 / (1 + e^-x) of each element."""


class Erf(Function, name="erf", value=erf_of, aten="erf", onnx="Erf", tinygrad="erf"):
    """The error function of x."""


class Exp2(Special, name="exp2", value=np.exp2, aten="exp2"):
    """2^x; results below the least normal number are 0."""


class Log10(Special, name="log10", value=np.log10, aten="log10"):
    """The logarithm of x to the base 10."""


class Asin(Special, name="asin", value=np.arcsin, aten="asin", onnx="Asin"):
    """The arc sine of x; NaN outside of [-1, 1]."""


class Acos(Special, name="acos", value=np.arccos, aten="acos", onnx="Acos"):
    """The arc cosine of x; NaN outside of [-1, 1]."""


class Atan(Special, name="atan", value=np.arctan, aten="atan", onnx="Atan"):
    """The arc tangent of x."""


class Sinh(Special, name="sinh", value=np.sinh, aten="sinh", onnx="Sinh"):
    """The hyperbolic sine of x."""


class Cosh(Special, name="cosh", value=np.cosh, aten="cosh", onnx="Cosh"):
    """The hyperbolic cosine of x."""


class Asinh(Special, name="asinh", value=np.arcsinh, aten="asinh", onnx="Asinh"):
    """The inverse of the hyperbolic sine."""


class Acosh(Special, name="acosh", value=np.arccosh, aten="acosh", onnx="Acosh"):
    """The inverse of the hyperbolic cosine; NaN below 1."""


class Atanh(Special, name="atanh", value=np.arctanh, aten="atanh", onnx="Atanh"):
    """The inverse of the hyperbolic tangent; NaN outside of [-1, 1]."""


class Erfc(Special, name="erfc", value=erfc_of, aten="erfc"):
    """1 - erf(x), precise where it is small; results below the least normal number are 0."""


class Erfcx(Special, name="erfcx", value=erfcx_of, aten="special_erfcx"):
    """e^(x^2) erfc(x)."""


class Erfinv(Special, name="erfinv", value=erfinv_of, aten="erfinv"):
    """The inverse of the error function; NaN outside of [-1, 1]."""


class Atan2(Binary, source=SPECIAL, name="atan2", value=np.arctan2, aten="atan2", tflite="ATAN2"):
    """The angle of the vector (b, a), from -pi to pi; signs of zeros count."""


class Hypot(Binary, source=SPECIAL, name="hypot", value=np.hypot, aten="hypot"):
    """sqrt(a^2 + b^2), which overflows only where the result does."""


OPS: tuple[type[Elementwise], ...] = (
    *(Neg, Abs, Sign, Floor, Ceil, Round, Trunc),
    *(Sqrt, Rsqrt, Reciprocal, Exp, Expm1, Log, Log1p, Log2),
    *(Sin, Cos, Tanh, Sigmoid, Erf),
    *(Exp2, Log10, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh),
    *(Erfc, Erfcx, Erfinv, Atan2, Hypot),
)
