"""Activation functions that are more than a limit. Hardtanh, ReLU and ReLU6 are clamp; SELU and CELU are elu."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Binary, Elementwise, Unary
from baretorch.ops.functions import erf_of
from baretorch.ops.helpers.kernel import Call, Kernel, Params


class Activation(Unary, source="activations/ref.c"):
    """An activation function of each element."""


@dataclass(frozen=True)
class LeakyRelu(Activation, name="leaky_relu", struct="bt_leaky_relu_f32"):
    """x if it is positive, else slope * x."""

    slope: float

    def value(self, x: Array) -> Array:
        return np.where(x > 0, x, x * self.slope)


class Prelu(
    Binary, name="prelu", value=lambda a, b: np.where(a > 0, a, a * b), onnx="PRelu", source="activations/ref.c"
):
    """x if it is positive, else slope * x, with a tensor of slopes that broadcasts."""


@dataclass(frozen=True)
class Elu(Activation, name="elu", struct="bt_elu_f32"):
    """positive * x if x is positive, else negative * (e^(rate * x) - 1)."""

    negative: float = 1.0
    positive: float = 1.0
    rate: float = 1.0

    def value(self, x: Array) -> Array:
        return np.where(x > 0, x * self.positive, np.expm1(x * self.rate) * self.negative)


@dataclass(frozen=True)
class Gelu(Activation, name="gelu"):
    """x * (1 + erf(x / sqrt 2)) / 2, or with `tanh` PyTorch's approximation of it."""

    tanh: bool = False

    def value(self, x: Array) -> Array:
        if self.tanh:
            return np.asarray(x * 0.5 * (1.0 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))))
        return np.asarray(x * 0.5 * (1.0 + erf_of(x / sqrt(2))))

    def params(self, call: Call[Any]) -> Params:
        return Params(self.struct, (("count", call.x.count),))

    @classmethod
    def kernels(cls) -> tuple[Kernel[Any], ...]:
        (exact,) = super().kernels()
        return (
            replace(exact, fits=lambda call: not call.op.tanh),
            replace(exact, symbol="bt_gelu_tanh_f32_ref", fits=lambda call: bool(call.op.tanh)),
        )


class Silu(Activation, name="silu", value=lambda x: x / (1.0 + np.exp(-x)), aten="silu", tinygrad="silu swish"):
    """x * sigmoid(x), also called swish."""


class Mish(
    Activation,
    name="mish",
    value=lambda x: x * np.tanh(np.logaddexp(0.0, x)),
    aten="mish",
    onnx="Mish",
    tinygrad="mish",
):
    """x * tanh(log(1 + e^x))."""


class Hardsigmoid(Activation, name="hardsigmoid", value=lambda x: np.clip(x + 3.0, 0.0, 6.0) / 6.0, aten="hardsigmoid"):
    """(x + 3) / 6 limited to [0, 1]."""


class Hardswish(
    Activation,
    name="hardswish",
    value=lambda x: x * np.clip(x + 3.0, 0.0, 6.0) / 6.0,
    aten="hardswish",
    onnx="HardSwish",
    tflite="HARD_SWISH",
    tinygrad="hardswish",
):
    """x * hardsigmoid(x)."""


@dataclass(frozen=True)
class Softplus(Activation, name="softplus", struct="bt_softplus_f32"):
    """log(1 + e^(beta * x)) / beta, and x where beta * x is above the threshold."""

    beta: float = 1.0
    threshold: float = 20.0

    def value(self, x: Array) -> Array:
        scaled = x * self.beta
        return np.where(scaled > self.threshold, x, np.logaddexp(0.0, scaled) / self.beta)


class LogSigmoid(
    Activation,
    name="log_sigmoid",
    value=lambda x: -np.logaddexp(0.0, -x),
    aten="log_sigmoid log_sigmoid_forward",
    tinygrad="logsigmoid",
):
    """log(sigmoid(x))."""


@dataclass(frozen=True)
class Hardshrink(Activation, name="hardshrink", struct="bt_shrink_f32"):
    """x outside of [-limit, limit], else 0."""

    limit: float = 0.5

    def value(self, x: Array) -> Array:
        return np.where(np.abs(x) <= self.limit, 0.0, x)


@dataclass(frozen=True)
class Softshrink(Activation, name="softshrink", struct="bt_shrink_f32"):
    """x moved by `limit` toward 0, and 0 where it is nearer than that."""

    limit: float = 0.5

    def value(self, x: Array) -> Array:
        return np.asarray(x - np.clip(x, -self.limit, self.limit))


@dataclass(frozen=True)
class Threshold(Activation, name="threshold", struct="bt_threshold_f32"):
    """x where it is above the threshold, else the value."""

    threshold: float
    replacement: float

    def value(self, x: Array) -> Array:
        return np.where(x <= self.threshold, self.replacement, x)


OPS: tuple[type[Elementwise], ...] = (
    *(LeakyRelu, Prelu, Elu, Gelu, Silu, Mish),
    *(Hardsigmoid, Hardswish, Softplus, LogSigmoid),
    *(Hardshrink, Softshrink, Threshold),
)
