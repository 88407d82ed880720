"""Rows of the ATen table: linear layers and batch norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering, Scalar
from baretorch.ops.elementwise import Add, Mul
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


def trains(name: str, running: bool) -> CompileError:
    """Return the error for a norm that uses the statistics of the batch itself, because it is in training mode or has
    no others."""
    if running:
        return CompileError(f"{name} is in training mode", try_="call model.eval() before returning the model")
    return CompileError(
        f"{name} has no running statistics",
        need="the mean and variance of the training data",
        try_="track_running_stats=True, or GroupNorm, InstanceNorm or LayerNorm for statistics of the input",
    )


def batch_norm(
    g: Lowering, x: str, weight: str | None, bias: str | None, mean: str | None, var: str | None, *rest: Any
) -> str:
    """Lower to two constants per channel: x * scale + shift. A pass folds them into the layer before.

    batch_norm has (training, momentum, eps, cudnn) after the four tensors, the core variants (momentum, eps)."""
    if isinstance(rest[0], bool) and rest[0]:
        raise trains("batch_norm", running=mean is not None)
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


ROWS: dict[str, AtenRow] = {
    "aten::batch_norm": AtenRow(batch_norm, (Add, Mul)),
    "aten::_native_batch_norm_legit_no_training": AtenRow(batch_norm, (Add, Mul)),
}
