"""Rows of the ATen table: activation functions."""

from __future__ import annotations

from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ops.activations import (
    Elu,
    Gelu,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    LeakyRelu,
    LogSigmoid,
    Mish,
    Prelu,
    Silu,
    Softplus,
    Softshrink,
    Threshold,
)

SELU = (1.7580993408473766, 1.0507009873554805)  # alpha * scale, and scale, of the paper


def leaky_relu(g: Lowering, x: str, slope: Scalar = 0.01) -> str:
    return g.b.add(LeakyRelu(float(slope)), x)


def rrelu(g: Lowering, x: str, lower: Scalar, upper: Scalar, training: bool = False, *_: Any) -> str:
    if training:
        raise CompileError("rrelu is in training mode", try_="call model.eval() before returning the model")
    return leaky_relu(g, x, (lower + upper) / 2)


def prelu(g: Lowering, x: str, slope: str) -> str:
    """Lower prelu with one slope, or one per channel, which is dimension 1."""
    rank = len(g.shape(x))
    if g[slope].count > 1 and rank > 1:
        slope = g.reshape(slope, (g[slope].count, *(1,) * (rank - 2)))
    return g.b.add(Prelu(), x, slope)


def elu(g: Lowering, x: str, alpha: Scalar = 1, scale: Scalar = 1, rate: Scalar = 1) -> str:
    return g.b.add(Elu(float(alpha * scale), float(scale), float(rate)), x)


def celu(g: Lowering, x: str, alpha: Scalar = 1) -> str:
    return g.b.add(Elu(float(alpha), 1.0, 1.0 / alpha), x)


def gelu(g: Lowering, x: str, approximate: str = "none") -> str:
    return g.b.add(Gelu(approximate == "tanh"), x)


def softplus(g: Lowering, x: str, beta: Scalar = 1, threshold: Scalar = 20) -> str:
    return g.b.add(Softplus(float(beta), float(threshold)), x)


def threshold(g: Lowering, x: str, limit: Scalar, value: Scalar) -> str:
    return g.b.add(Threshold(float(limit), float(value)), x)


ROWS: dict[str, AtenRow] = {
    "aten::leaky_relu": AtenRow(leaky_relu, (LeakyRelu,)),
    "aten::rrelu": AtenRow(rrelu, (LeakyRelu,)),
    "aten::prelu": AtenRow(prelu, (Prelu,)),
    "aten::_prelu_kernel": AtenRow(prelu, (Prelu,)),
    "aten::elu": AtenRow(elu, (Elu,)),
    "aten::selu": AtenRow(lambda g, x: g.b.add(Elu(*SELU), x), (Elu,)),
    "aten::celu": AtenRow(celu, (Elu,)),
    "aten::gelu": AtenRow(gelu, (Gelu,)),
    "aten::silu": AtenRow(lambda g, x: g.b.add(Silu(), x), (Silu,)),
    "aten::mish": AtenRow(lambda g, x: g.b.add(Mish(), x), (Mish,)),
    "aten::hardsigmoid": AtenRow(lambda g, x: g.b.add(Hardsigmoid(), x), (Hardsigmoid,)),
    "aten::hardswish": AtenRow(lambda g, x: g.b.add(Hardswish(), x), (Hardswish,)),
    "aten::softplus": AtenRow(softplus, (Softplus,)),
    "aten::log_sigmoid": AtenRow(lambda g, x: g.b.add(LogSigmoid(), x), (LogSigmoid,)),
    "aten::log_sigmoid_forward": AtenRow(lambda g, x: g.b.add(LogSigmoid(), x), (LogSigmoid,)),
    "aten::hardshrink": AtenRow(lambda g, x, limit=0.5: g.b.add(Hardshrink(float(limit)), x), (Hardshrink,)),
    "aten::softshrink": AtenRow(lambda g, x, limit=0.5: g.b.add(Softshrink(float(limit)), x), (Softshrink,)),
    "aten::threshold": AtenRow(threshold, (Threshold,)),
}
