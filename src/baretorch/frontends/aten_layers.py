"""Rows of the ATen table: layers, elementwise arithmetic, activations."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ops.elementwise import Add, Clamp, Mul
from baretorch.ops.linear import Linear


def linear(g: Lowering, x: str, weight: str, bias: str | None = None) -> str:
    return g.b.add(Linear(), x, weight, *((bias,) if bias else ()))


def addmm(g: Lowering, bias: str, x: str, weight_t: str, beta: Scalar = 1, alpha: Scalar = 1) -> str:
    if beta != 1 or alpha != 1:
        raise CompileError("addmm: only beta 1 and alpha 1 are supported", have=f"beta {beta}, alpha {alpha}")
    if g.shape(bias) != (g.shape(weight_t)[1],):
        raise CompileError("addmm: only a bias per column is supported", have=str(g[bias]))
    return linear(g, x, g.permute(weight_t, (1, 0)), bias)


def mm(g: Lowering, x: str, weight_t: str) -> str:
    return linear(g, x, g.permute(weight_t, (1, 0)))


def batch_norm(
    g: Lowering, x: str, weight: str | None, bias: str | None, mean: str | None, var: str | None, *rest: Any
) -> str:
    """Two constants per channel: x * scale + shift. A pass folds them into the layer before.

    batch_norm has (training, momentum, eps, cudnn) after the four tensors, the core variants (momentum, eps)."""
    if mean is None or var is None:
        raise CompileError(
            "batch_norm has no running statistics",
            need="the mean and variance of the training data",
            try_="track_running_stats=True, or GroupNorm, InstanceNorm or LayerNorm for statistics of the input",
        )
    if isinstance(rest[0], bool) and rest[0]:
        raise CompileError("batch_norm is in training mode", try_="call model.eval() before returning the model")
    eps = rest[2] if isinstance(rest[0], bool) else rest[1]
    channels = g.shape(x)[1]
    gamma = g.constant(weight, "batch_norm: weight") if weight else np.ones(channels)
    beta = g.constant(bias, "batch_norm: bias") if bias else np.zeros(channels)
    with np.errstate(invalid="ignore"):  # a negative variance gives NaN, as in PyTorch
        scale = gamma / np.sqrt(g.constant(var, "batch_norm: running_var").astype(np.float64) + eps)
    shift = beta - g.constant(mean, "batch_norm: running_mean") * scale
    column = (channels, *(1,) * (len(g.shape(x)) - 2))
    scaled = g.b.add(Mul(), x, g.b.const("bn_scale", scale.astype(np.float32).reshape(column)))
    return g.b.add(Add(), scaled, g.b.const("bn_shift", shift.astype(np.float32).reshape(column)))


# --- elementwise ------------------------------------------------------------------------------------------


def add(g: Lowering, x: str | Scalar, y: str | Scalar, alpha: Scalar = 1) -> str:
    x, y = operands(g, x, y)
    if alpha != 1:
        y = g.b.add(Mul(), y, g.operand(alpha, y))
    return g.b.add(Add(), x, y)


def sub(g: Lowering, x: str | Scalar, y: str | Scalar, alpha: Scalar = 1) -> str:
    return add(g, x, y, -alpha)


def mul(g: Lowering, x: str | Scalar, y: str | Scalar) -> str:
    return g.b.add(Mul(), *operands(g, x, y))


def operands(g: Lowering, x: str | Scalar, y: str | Scalar) -> tuple[str, str]:
    like = x if isinstance(x, str) else y
    assert isinstance(like, str), "one of two operands is a tensor"
    return g.operand(x, like), g.operand(y, like)


def clamp(g: Lowering, x: str, lo: Scalar | None = None, hi: Scalar | None = None) -> str:
    if isinstance(lo, str) or isinstance(hi, str):
        raise CompileError("clamp: only numbers are supported as limits", need="min and max as Python numbers")
    return g.b.add(Clamp(-inf if lo is None else float(lo), inf if hi is None else float(hi)), x)
