"""Rows of the ONNX table: norms, sampling at computed positions, and losses."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise, index, norms, shapes
from baretorch.frontends.aten.norms import affine, group_norm
from baretorch.frontends.lowering import Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall, need_float
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
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

EPSILON = 1e-5  # where a norm says nothing else


def batch_norm(g: OnnxLowering, call: OnnxCall) -> str:
    if call.attribute("training_mode", 0):
        raise CompileError(
            "BatchNormalization is in training mode",
            need="training_mode 0, and the mean and variance of the training data",
            try_="export the model after model.eval()",
        )
    x, *constants = (call.need(i) for i in range(5))
    need_float(g, call.op, x)
    weight, bias, mean, var = constants
    return norms.batch_norm(g, x, weight, bias, mean, var, 0.9, float(call.attribute("epsilon", EPSILON)))


def instance_norm(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    return group_norm(g, x, g.shape(x)[1], call.need(1), call.need(2), float(call.attribute("epsilon", EPSILON)))


def group(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower a group norm. Scale and bias have an element per channel; before version 21, one per group."""
    x, weight, bias = (call.need(i) for i in range(3))
    groups, eps = int(call.attribute("num_groups")), float(call.attribute("epsilon", EPSILON))
    channels = g.shape(x)[1]
    if call.version < 21 and g[weight].count != channels:
        each = (groups, channels // groups)
        weight, bias = (
            g.reshape(g.b.add(Expand(each), g.reshape(t, (groups, 1))), (channels,)) for t in (weight, bias)
        )
    return group_norm(g, x, groups, weight, bias, eps)


def layer_norm(g: OnnxLowering, call: OnnxCall) -> Result:
    """Lower a layer norm, with mean and inverse deviation if they are outputs."""
    x = call.need(0)
    need_float(g, call.op, x)
    axes, eps = _last_axes(g, call), float(call.attribute("epsilon", EPSILON))
    y = _normalize(g, LayerNorm(axes, eps), x, call.need(1), call.input(2))
    if call.outputs == 1:
        return y
    small = g.b.add(Add(), g.b.add(Var(axes, True, 0.0), x), g.operand(eps, x))
    return y, g.b.add(Mean(axes, True), x), g.b.add(Rsqrt(), small)


def rms_norm(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    need_float(g, call.op, x)
    op = LayerNorm(_last_axes(g, call), float(call.attribute("epsilon", EPSILON)), centred=False)
    return _normalize(g, op, x, call.need(1), None)


def _last_axes(g: OnnxLowering, call: OnnxCall) -> tuple[int, ...]:
    x = call.need(0)
    return tuple(range(g.axis(x, int(call.attribute("axis", -1))), len(g.shape(x))))


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


def mean_variance(g: OnnxLowering, call: OnnxCall) -> str:
    x = call.need(0)
    axes = tuple(sorted(g.axis(x, int(a)) for a in call.attribute("axes", (0, 2, 3))))
    return g.b.add(LayerNorm(axes, 1e-9), x, *affine(g, None, None))


def lp_norm(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower an Lp norm; a vector of zeros stays unchanged."""
    x, order = call.need(0), float(call.attribute("p", 2))
    axis = g.axis(x, int(call.attribute("axis", -1)))
    size = g.b.add(VectorNorm((axis,), True, order), x)
    return g.b.add(Div(), x, g.b.add(Maximum(), size, g.operand(float(np.finfo(np.float32).tiny), x)))


def lrn(g: OnnxLowering, call: OnnxCall) -> str:
    """Average squares over neighbouring channels, as in an image whose rows are channels."""
    x, size = call.need(0), int(call.attribute("size"))
    alpha, beta = float(call.attribute("alpha", 1e-4)), float(call.attribute("beta", 0.75))
    n, c, *rest = g.shape(x)
    squares = g.reshape(g.b.add(Mul(), x, x), (n, c, int(np.prod(rest)), 1))
    before = (size - 1) // 2
    means = g.b.add(AvgPool2d((size, 1), (1, 1), (before, size - 1 - before, 0, 0), divisor=size), squares)
    scaled = g.b.add(Mul(), g.reshape(means, g.shape(x)), g.operand(alpha, x))
    base = g.b.add(Add(), scaled, g.operand(float(call.attribute("bias", 1.0)), x))
    return g.b.add(Mul(), x, g.b.add(Pow(), base, g.operand(-beta, x)))


# --- sampling -------------------------------------------------------------------------------------------------

MODES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest", "cubic": "bicubic", "bicubic": "bicubic"}


def grid_sample(g: OnnxLowering, call: OnnxCall) -> str:
    x, grid = call.need(0), call.need(1)
    mode = MODES.get(call.attribute("mode", "linear"), "")
    if len(g.shape(x)) != 4 or not mode:
        raise CompileError(
            f"GridSample of {len(g.shape(x)) - 2} dimensions by {call.attribute('mode', 'linear')!r} is not supported",
            have=str(g[x]),
            need="x[N, C, H, W]; linear, nearest or cubic",
        )
    corners = bool(call.attribute("align_corners", 0))
    return g.nhwc(GridSample2d(mode, call.attribute("padding_mode", "zeros"), corners), x, grid)


def affine_grid(g: OnnxLowering, call: OnnxCall) -> str:
    """Multiply the positions of a plain grid by the matrix of each image."""
    theta, size = call.need(0), g.ints(call.need(1), "AffineGrid: size")
    corners = bool(call.attribute("align_corners", 0))
    lines = []
    for n in reversed(size[2:]):
        lines.append(np.linspace(-1, 1, n) if corners else (2 * np.arange(n) + 1) / n - 1)
    grids = np.meshgrid(*reversed(lines), indexing="ij")
    places = np.stack([*reversed(grids), np.ones(size[2:])], axis=-1).reshape(-1, len(lines) + 1)
    transposed = g.permute(theta, (0, 2, 1))
    y = g.b.add(Matmul(), g.b.const("grid", places.astype(np.float32)), transposed)
    return g.reshape(y, (size[0], *size[2:], len(lines)))


# --- losses, for models that compute their own ---------------------------------------------------------------


def negative_log_likelihood(g: OnnxLowering, call: OnnxCall) -> str:
    return _loss(g, call, call.need(0))


def softmax_cross_entropy(g: OnnxLowering, call: OnnxCall) -> Result:
    need_float(g, call.op, call.need(0))
    logs = g.b.add(LogSoftmax(1), call.need(0))
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
        gone = elementwise.compared(g, Eq(), target, int(ignored))
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
    "BatchNormalization": OnnxRow(batch_norm),
    "InstanceNormalization": OnnxRow(instance_norm),
    "GroupNormalization": OnnxRow(group),
    "LayerNormalization": OnnxRow(layer_norm),
    "RMSNormalization": OnnxRow(rms_norm),
    "MeanVarianceNormalization": OnnxRow(mean_variance),
    "LpNormalization": OnnxRow(lp_norm),
    "LRN": OnnxRow(lrn),
    "GridSample": OnnxRow(grid_sample),
    "AffineGrid": OnnxRow(affine_grid),
    "NegativeLogLikelihoodLoss": OnnxRow(negative_log_likelihood),
    "SoftmaxCrossEntropyLoss": OnnxRow(softmax_cross_entropy),
}
