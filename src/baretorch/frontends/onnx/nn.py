"""Rows of the ONNX table: norms, sampling at computed positions, and losses."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise, index, norms, shapes
from baretorch.frontends.aten.norms import affine, group_norm
from baretorch.frontends.lowering import Ints, Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.ops.elementwise import Add, Div, Maximum, Mul, Pow
from baretorch.ops.functions import Neg, Rsqrt
from baretorch.ops.layout import Expand
from baretorch.ops.logic import Eq, Where
from baretorch.ops.matmul import Matmul
from baretorch.ops.norm import LayerNorm
from baretorch.ops.pool import AvgPool2d
from baretorch.ops.reduce import Mean, Sum, Var, VectorNorm
from baretorch.ops.softmax import LogSoftmax
from baretorch.ops.upsample import GridSample2d

EPSILON = 1e-5  # the default of all norms


def batch_norm(
    g: OnnxLowering,
    x: str,
    weight: str,
    bias: str,
    mean: str,
    var: str,
    *,
    training_mode: int = 0,
    epsilon: float = EPSILON,
) -> str:
    if training_mode:
        raise CompileError(
            "BatchNormalization is in training mode",
            need="training_mode 0, and the mean and variance of the training data",
            try_="export the model after model.eval()",
        )
    need_float(g, "BatchNormalization", x)
    return norms.batch_norm(g, x, weight, bias, mean, var, 0.9, epsilon)


def instance_norm(g: OnnxLowering, x: str, weight: str, bias: str, *, epsilon: float = EPSILON) -> str:
    return group_norm(g, x, g.shape(x)[1], weight, bias, epsilon)


def group(
    g: OnnxLowering, x: str, weight: str, bias: str, *, num_groups: int, epsilon: float = EPSILON, call: OnnxCall
) -> str:
    """Lower a group norm. Scale and bias have an element per channel; before version 21, one per group."""
    channels = g.shape(x)[1]
    if call.version < 21 and g[weight].count != channels:
        each = (num_groups, channels // num_groups)
        weight, bias = (
            g.reshape(g.b.add(Expand(each), g.reshape(t, (num_groups, 1))), (channels,)) for t in (weight, bias)
        )
    return group_norm(g, x, num_groups, weight, bias, epsilon)


def layer_norm(
    g: OnnxLowering,
    x: str,
    weight: str,
    bias: str | None = None,
    *,
    axis: int = -1,
    epsilon: float = EPSILON,
    call: OnnxCall,
) -> Result:
    """Lower a layer norm, with mean and inverse deviation if they are outputs."""
    need_float(g, call.op, x)
    axes = _last_axes(g, x, axis)
    y = _normalize(g, LayerNorm(axes, epsilon), x, weight, bias)
    if call.outputs == 1:
        return y
    small = g.b.add(Add(), g.b.add(Var(axes, True, 0.0), x), g.operand(epsilon, x))
    return y, g.b.add(Mean(axes, True), x), g.b.add(Rsqrt(), small)


def rms_norm(g: OnnxLowering, x: str, weight: str, *, axis: int = -1, epsilon: float = EPSILON) -> str:
    need_float(g, "RMSNormalization", x)
    return _normalize(g, LayerNorm(_last_axes(g, x, axis), epsilon, centred=False), x, weight, None)


def _last_axes(g: OnnxLowering, x: str, first: int) -> tuple[int, ...]:
    return tuple(range(g.axis(x, first), len(g.shape(x))))


def _normalize(g: Lowering, op: LayerNorm, x: str, weight: str | None, bias: str | None) -> str:
    """Apply a norm, and after it scale and bias that only broadcast to the normalised dimensions."""
    shape = tuple(g.shape(x)[a] for a in op.axes)

    def fits(t: str | None) -> bool:
        return t is None or g[t].count == 1 or g.shape(t) == shape

    if fits(weight) and fits(bias):
        return g.b.add(
            op, x, *affine(g, *(t and g.reshape(t, shape if g[t].count > 1 else (1,)) for t in (weight, bias)))
        )
    y = g.b.add(op, x, *affine(g, None, None))
    y = y if weight is None else g.b.add(Mul(), y, weight)
    return y if bias is None else g.b.add(Add(), y, bias)


def mean_variance(g: OnnxLowering, x: str, *, axes: Ints = (0, 2, 3)) -> str:
    every = tuple(sorted(g.axis(x, a) for a in axes))
    return g.b.add(LayerNorm(every, 1e-9), x, *affine(g, None, None))


def lp_norm(g: OnnxLowering, x: str, *, p: int = 2, axis: int = -1) -> str:
    """Lower an Lp norm; a vector of zeros stays unchanged."""
    size = g.b.add(VectorNorm((g.axis(x, axis),), True, float(p)), x)
    return g.b.add(Div(), x, g.b.add(Maximum(), size, g.operand(float(np.finfo(np.float32).tiny), x)))


def lrn(g: OnnxLowering, x: str, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> str:
    """Average squares over neighbouring channels, as in an image whose rows are channels."""
    n, c, *rest = g.shape(x)
    squares = g.reshape(g.b.add(Mul(), x, x), (n, c, int(np.prod(rest)), 1))
    before = (size - 1) // 2
    means = g.b.add(AvgPool2d((size, 1), (1, 1), (before, size - 1 - before, 0, 0), divisor=size), squares)
    scaled = g.b.add(Mul(), g.reshape(means, g.shape(x)), g.operand(alpha, x))
    base = g.b.add(Add(), scaled, g.operand(bias, x))
    return g.b.add(Mul(), x, g.b.add(Pow(), base, g.operand(-beta, x)))


# --- sampling -------------------------------------------------------------------------------------------------

MODES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}


def grid_sample(
    g: OnnxLowering, x: str, grid: str, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0
) -> str:
    if len(g.shape(x)) != 4 or mode not in MODES:
        raise CompileError(
            f"GridSample of {len(g.shape(x)) - 2} dimensions by {mode!r} is not supported",
            have=str(g[x]),
            need="x[N, C, H, W]; linear, nearest or cubic",
        )
    return g.nhwc(GridSample2d(MODES[mode], padding_mode, bool(align_corners)), x, grid)


def affine_grid(g: OnnxLowering, theta: str, sizes: str, *, align_corners: int = 0) -> str:
    """Multiply the positions of a plain grid by the matrix of each image."""
    size, lines = g.ints(sizes, "AffineGrid: size"), []
    for n in reversed(size[2:]):
        lines.append(np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1)
    grids = np.meshgrid(*reversed(lines), indexing="ij")
    places = np.stack([*reversed(grids), np.ones(size[2:])], axis=-1).reshape(-1, len(lines) + 1)
    transposed = g.permute(theta, (0, 2, 1))
    y = g.b.add(Matmul(), g.b.const("grid", places.astype(np.float32)), transposed)
    return g.reshape(y, (size[0], *size[2:], len(lines)))


# --- losses, for models that compute their own ---------------------------------------------------------------


def softmax_cross_entropy(g: OnnxLowering, x: str, *, call: OnnxCall) -> Result:
    need_float(g, call.op, x)
    logs = g.b.add(LogSoftmax(1), x)
    loss = _loss(g, call, logs)
    return (loss, logs)[: call.outputs] if call.outputs > 1 else loss


def _loss(g: OnnxLowering, call: OnnxCall, logs: str) -> str:
    """Return minus the entry of each target's class, times the class's weight; ignored targets have weight 0."""
    target, weight = call.need(1), call.input(2)
    need_float(g, call.op, logs)
    picked = shapes.squeeze(g, index.gather(g, logs, 1, shapes.unsqueeze(g, target, 1)), 1)
    loss = g.b.add(Neg(), picked)
    weights = None if weight is None else index.select_rows(g, weight, 0, target)
    ignored = call.attribute("ignore_index")
    if ignored is not None:
        gone = elementwise.compare(g, Eq(), target, int(ignored))
        if weights is None:
            weights = g.b.const("weights", np.ones(g.shape(target), np.float32))
        weights = g.b.add(Where(), gone, g.operand(0.0, logs), weights)
        loss = g.b.add(Where(), gone, g.operand(0.0, logs), loss)
    if weights is not None:
        loss = g.b.add(Mul(), loss, weights)
    how, every = call.attribute("reduction", "mean"), tuple(range(len(g.shape(target))))
    if how == "none":
        return loss
    if how == "sum" or weights is not None:
        total = g.b.add(Sum(every, False), loss)
        return total if how == "sum" else g.b.add(Div(), total, g.b.add(Sum(every, False), weights or loss))
    if how != "mean":
        raise CompileError(f"{call.op}: no reduction is called {how!r}", need="none, sum or mean")
    return g.b.add(Mean(every, False), loss)


ROWS: dict[str, OnnxRow] = {
    "BatchNormalization": row(batch_norm),
    "InstanceNormalization": row(instance_norm),
    "GroupNormalization": row(group),
    "LayerNormalization": row(layer_norm),
    "RMSNormalization": row(rms_norm),
    "MeanVarianceNormalization": row(mean_variance),
    "LpNormalization": row(lp_norm),
    "LRN": row(lrn),
    "GridSample": row(grid_sample),
    "AffineGrid": row(affine_grid),
    "NegativeLogLikelihoodLoss": OnnxRow(lambda g, call: _loss(g, call, call.need(0))),
    "SoftmaxCrossEntropyLoss": row(softmax_cross_entropy),
}
