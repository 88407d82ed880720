"""Rows of the ATen table: norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Ints, Lowering
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.norm import GroupNorm, LayerNorm


def training_error(name: str, running: bool) -> CompileError:
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
        raise training_error("batch_norm", running=mean is not None)
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


def layer_norm(
    g: Lowering, x: str, shape: Ints, weight: str | None = None, bias: str | None = None, eps: float = 1e-5, *_: Any
) -> str:
    return g.b.add(LayerNorm(last(g, x, shape), eps), x, *affine(g, weight, bias))


def rms_norm(g: Lowering, x: str, shape: Ints, weight: str | None = None, eps: float | None = None) -> str:
    small = float(np.finfo(np.float32).eps) if eps is None else eps
    return g.b.add(LayerNorm(last(g, x, shape), small, centred=False), x, *affine(g, weight, None))


def last(g: Lowering, x: str, shape: Ints) -> tuple[int, ...]:
    rank = len(g.shape(x))
    return tuple(range(rank - len(shape), rank))


def affine(g: Lowering, weight: str | None, bias: str | None) -> tuple[str, str]:
    """Return weight and bias, or ones and zeros for missing ones."""
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    return weight or g.b.const("norm_one", one), bias or g.b.const("norm_zero", zero)


def group_norm(
    g: Lowering, x: str, groups: int, weight: str | None = None, bias: str | None = None, eps: float = 1e-5, *_: Any
) -> str:
    return g.b.add(GroupNorm(groups, eps), x, *affine(g, weight, bias))


def instance_norm(
    g: Lowering,
    x: str,
    weight: str | None,
    bias: str | None,
    running_mean: str | None,
    running_var: str | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> str:
    if not use_input_stats:
        return batch_norm(g, x, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        raise training_error("instance_norm", running=True)
    return group_norm(g, x, g.shape(x)[1], weight, bias, eps)


def batch_norm_of_batch(g: Lowering, x: str, weight: str | None, bias: str | None, *rest: Any) -> str:
    """Lower batch_norm with the statistics of the batch itself."""
    raise training_error("batch_norm", running=not isinstance(rest[0], bool))


ROWS: dict[str, AtenRow] = {
    **rows("batch_norm _native_batch_norm_legit_no_training", batch_norm, Add, Mul),
    **rows("layer_norm native_layer_norm", layer_norm, LayerNorm),
    **rows("rms_norm _fused_rms_norm", rms_norm, LayerNorm),
    **rows("group_norm", group_norm, GroupNorm),
    **rows(
        "native_group_norm",
        lambda g, x, weight, bias, n, c, hw, groups, eps: group_norm(g, x, groups, weight, bias, eps),
        GroupNorm,
    ),
    **rows("instance_norm", instance_norm, GroupNorm, Add, Mul),
    **rows("_native_batch_norm_legit _native_batch_norm_legit_functional", batch_norm_of_batch, refused=True),
}
