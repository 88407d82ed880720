"""Rows of the ATen table: activation functions."""

from __future__ import annotations

from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ops.activations import Elu, Gelu, Hardshrink, LeakyRelu, Prelu, Softplus, Softshrink, Threshold

SELU = (1.7580993408473766, 1.0507009873554805)  # alpha * scale, and scale, of the paper


def leaky_relu(g: Lowering, x: str, slope: Scalar = 0.01) -> str:
    return g.b.add(LeakyRelu(float(slope)), x)


def rrelu(g: Lowering, x: str, lower: Scalar, upper: Scalar, training: bool = False, *_: Any) -> str:
    if training:
        raise CompileError("rrelu is in training mode", try_="call model.eval() before returning the model")
    return leaky_relu(g, x, (lower + upper) / 2)


def prelu(g: Lowering, x: str, slope: str) -> str:
    """Lower prelu with a single slope, or with a slope per channel. Channels are dimension 1."""
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
    **rows("leaky_relu", leaky_relu, LeakyRelu),
    **rows("rrelu", rrelu, LeakyRelu),
    **rows("prelu _prelu_kernel", prelu, Prelu),
    **rows("elu", elu, Elu),
    **rows("selu", lambda g, x: g.b.add(Elu(*SELU), x), Elu),
    **rows("celu", celu, Elu),
    **rows("gelu", gelu, Gelu),
    **rows("softplus", softplus, Softplus),
    **rows("hardshrink", lambda g, x, limit=0.5: g.b.add(Hardshrink(float(limit)), x), Hardshrink),
    **rows("softshrink", lambda g, x, limit=0.5: g.b.add(Softshrink(float(limit)), x), Softshrink),
    **rows("threshold", threshold, Threshold),
}
