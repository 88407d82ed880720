"""Activation functions that are more than a limit. Hardtanh, ReLU and ReLU6 are clamp; SELU and CELU are elu."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops import elementwise
from baretorch.ops.elementwise import Binary, Elementwise, Unary
from baretorch.ops.functions import erf_of
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.names import FormatNames


@dataclass(frozen=True)
class Activation(Unary):
    """An activation function of each element."""

    source: ClassVar[str] = "activations/ref.c"


@dataclass(frozen=True)
class LeakyRelu(Activation):
    """x if it is positive, else slope * x."""

    name: ClassVar[str] = "leaky_relu"
    struct: ClassVar[str] = "bt_leaky_relu_f32"
    slope: float

    def value(self, x: Array) -> Array:
        return np.where(x > 0, x, x * self.slope)


@dataclass(frozen=True)
class Prelu(Binary):
    """x if it is positive, else slope * x, with a tensor of slopes that broadcasts."""

    name: ClassVar[str] = "prelu"
    names: ClassVar[FormatNames] = FormatNames(onnx="PRelu")
    source: ClassVar[str] = "activations/ref.c"

    def value(self, a: Array, b: Array) -> Array:
        return np.where(a > 0, a, a * b)


@dataclass(frozen=True)
class Elu(Activation):
    """positive * x if x is positive, else negative * (e^(rate * x) - 1)."""

    name: ClassVar[str] = "elu"
    struct: ClassVar[str] = "bt_elu_f32"
    negative: float = 1.0
    positive: float = 1.0
    rate: float = 1.0

    def value(self, x: Array) -> Array:
        return np.where(x > 0, x * self.positive, np.expm1(x * self.rate) * self.negative)


@dataclass(frozen=True)
class Gelu(Activation):
    """x * (1 + erf(x / sqrt 2)) / 2, or with `tanh` PyTorch's approximation of it."""

    name: ClassVar[str] = "gelu"
    tanh: bool = False

    def value(self, x: Array) -> Array:
        if self.tanh:
            return np.asarray(x * 0.5 * (1.0 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))))
        return np.asarray(x * 0.5 * (1.0 + erf_of(x / sqrt(2))))

    def params(self, call: Call[Any]) -> Params:
        return Params(self.struct, (("count", call.x.count),))


@dataclass(frozen=True)
class Silu(Activation):
    """x * sigmoid(x), also called swish."""

    name: ClassVar[str] = "silu"
    names: ClassVar[FormatNames] = FormatNames(aten="silu", tinygrad="silu swish")

    def value(self, x: Array) -> Array:
        return np.asarray(x / (1.0 + np.exp(-x)))


@dataclass(frozen=True)
class Mish(Activation):
    """x * tanh(log(1 + e^x))."""

    name: ClassVar[str] = "mish"
    names: ClassVar[FormatNames] = FormatNames(aten="mish", onnx="Mish", tinygrad="mish")

    def value(self, x: Array) -> Array:
        return np.asarray(x * np.tanh(np.logaddexp(0.0, x)))


@dataclass(frozen=True)
class Hardsigmoid(Activation):
    """(x + 3) / 6 limited to [0, 1]."""

    name: ClassVar[str] = "hardsigmoid"
    names: ClassVar[FormatNames] = FormatNames(aten="hardsigmoid")

    def value(self, x: Array) -> Array:
        return np.asarray(np.clip(x + 3.0, 0.0, 6.0) / 6.0)


@dataclass(frozen=True)
class Hardswish(Activation):
    """x * hardsigmoid(x)."""

    name: ClassVar[str] = "hardswish"
    names: ClassVar[FormatNames] = FormatNames(
        aten="hardswish", onnx="HardSwish", tflite="HARD_SWISH", tinygrad="hardswish"
    )

    def value(self, x: Array) -> Array:
        return np.asarray(x * np.clip(x + 3.0, 0.0, 6.0) / 6.0)


@dataclass(frozen=True)
class Softplus(Activation):
    """log(1 + e^(beta * x)) / beta, and x where beta * x is above the threshold."""

    name: ClassVar[str] = "softplus"
    struct: ClassVar[str] = "bt_softplus_f32"
    beta: float = 1.0
    threshold: float = 20.0

    def value(self, x: Array) -> Array:
        scaled = x * self.beta
        return np.where(scaled > self.threshold, x, np.logaddexp(0.0, scaled) / self.beta)


@dataclass(frozen=True)
class LogSigmoid(Activation):
    """log(sigmoid(x))."""

    name: ClassVar[str] = "log_sigmoid"
    names: ClassVar[FormatNames] = FormatNames(aten="log_sigmoid log_sigmoid_forward", tinygrad="logsigmoid")

    def value(self, x: Array) -> Array:
        return np.asarray(-np.logaddexp(0.0, -x))


@dataclass(frozen=True)
class Hardshrink(Activation):
    """x outside of [-limit, limit], else 0."""

    name: ClassVar[str] = "hardshrink"
    struct: ClassVar[str] = "bt_shrink_f32"
    limit: float = 0.5

    def value(self, x: Array) -> Array:
        return np.where(np.abs(x) <= self.limit, 0.0, x)


@dataclass(frozen=True)
class Softshrink(Activation):
    """x moved by `limit` toward 0, and 0 where it is nearer than that."""

    name: ClassVar[str] = "softshrink"
    struct: ClassVar[str] = "bt_shrink_f32"
    limit: float = 0.5

    def value(self, x: Array) -> Array:
        return np.asarray(x - np.clip(x, -self.limit, self.limit))


@dataclass(frozen=True)
class Threshold(Activation):
    """x where it is above the threshold, else the value."""

    name: ClassVar[str] = "threshold"
    struct: ClassVar[str] = "bt_threshold_f32"
    threshold: float
    replacement: float

    def value(self, x: Array) -> Array:
        return np.where(x <= self.threshold, self.replacement, x)


def kernels(op: type[Elementwise]) -> tuple[Kernel[Any], ...]:
    rows = elementwise.kernels(op)
    if op is not Gelu:
        return rows
    (exact,) = rows
    return (
        replace(exact, fits=lambda call: not call.op.tanh),
        replace(exact, symbol="bt_gelu_tanh_f32_ref", fits=lambda call: bool(call.op.tanh)),
    )


OPS: tuple[type[Elementwise], ...] = (
    LeakyRelu,
    Prelu,
    Elu,
    Gelu,
    Silu,
    Mish,
    Hardsigmoid,
    Hardswish,
    Softplus,
    LogSigmoid,
    Hardshrink,
    Softshrink,
    Threshold,
)
