"""Lowers tinygrad's products, convolutions, pools, norms, attention and recurrent cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import conv, elementwise, index, norms, pools, products, reduce, sequence, shapes
from baretorch.frontends.aten.promotion import to_float
from baretorch.frontends.einsum import einsum
from baretorch.frontends.lowering import Build, Lowering, Result, known_value
from baretorch.frontends.tinygrad.moves import flat
from baretorch.frontends.windows import Windows
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.functions import Rsqrt
from baretorch.ops.norm import LayerNorm
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean

Numbers = int | Sequence[int]


# --- products -------------------------------------------------------------------------------------------------


def _factors(g: Lowering, name: str, *factors: str) -> tuple[str, ...]:
    """Return operands as float32. If all are integers, tinygrad computes in their own type, which wraps around."""
    if not any(g[x].dtype is DType.FLOAT32 for x in factors):
        raise CompileError(
            f"{name}: products of integers are not supported",
            have=", ".join(str(g[x]) for x in factors),
            try_="cast the tensors with .float() in the model",
        )
    return to_float(g, *factors)


def _dot(g: Lowering, x: str, w: str, dtype: str | None = None) -> str:
    return products.matmul(g, *_factors(g, "dot", x, w))


def _matmul(g: Lowering, x: str, y: str, reverse: bool = False, dtype: str | None = None) -> str:
    return _dot(g, y, x) if reverse else _dot(g, x, y)


def _linear(g: Lowering, x: str, weight: str, bias: str | None = None, dtype: str | None = None) -> str:
    """Lower a linear layer. The weight is [in, out], or a factor for each input."""
    if len(g.shape(weight)) == 2 and len(g.shape(bias) if bias else (1,)) == 1:
        x, weight = _factors(g, "linear", x, weight)
        return products.linear(g, x, shapes.t(g, weight), bias)
    y = elementwise.mul(g, x, weight) if len(g.shape(weight)) == 1 else _dot(g, x, weight)
    return elementwise.add(g, y, bias) if bias else y


def _einsum(g: Lowering, _: Any, formula: str, *operands: Any, dtype: str | None = None) -> str:
    return einsum(g, formula, _factors(g, "einsum", *flat(operands[0], operands[1:])))


# --- convolutions and pools -----------------------------------------------------------------------------------


def _each(value: Numbers, dims: int) -> tuple[int, ...]:
    return (value,) * dims if isinstance(value, int) else tuple(value)


def _around(padding: Numbers, dims: int) -> list[tuple[int, int]]:
    """Return (before, after) of each dimension: one number for all sides, one per dimension, or all sides, the last
    dimension first."""
    numbers = _each(padding, dims)
    if len(numbers) == dims:
        return [(n, n) for n in numbers]
    return [(numbers[i], numbers[i + 1]) for i in range(0, len(numbers), 2)][::-1]


def _windows(kernel: Sequence[int], stride: Numbers | None, dilation: Numbers, padding: Numbers) -> Windows:
    """Return the windows; without a stride, none overlap."""
    size, dims, around = tuple(kernel), len(kernel), _around(padding, len(kernel))
    step = size if stride is None else _each(stride, dims)
    return Windows(size, step, _each(dilation, dims), tuple(a for a, _ in around), tuple(b for _, b in around))


def _equal_sides(padding: Numbers, dims: int, what: str) -> list[int]:
    around = _around(padding, dims)
    if any(before != after for before, after in around):
        raise CompileError(
            f"{what}: another padding before than after is not supported",
            have=f"padding {padding}",
            try_="x.pad() before it, or a slice after",
        )
    return [before for before, _ in around]


def _conv2d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None = None,
    groups: int = 1,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    dtype: str | None = None,
) -> str:
    """Lower a convolution of any number of dimensions, which the weight determines."""
    return conv.convolve(g, x, weight, bias, _windows(g.shape(weight)[2:], stride, dilation, padding), groups)


def _conv_transpose2d(
    g: Lowering,
    x: str,
    weight: str,
    bias: str | None = None,
    groups: int = 1,
    stride: Numbers = 1,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
) -> str:
    dims = len(g.shape(weight)) - 2
    step, reach, more = (_each(v, dims) for v in (stride, dilation, output_padding))
    sides = _equal_sides(padding, dims, "conv_transpose2d")
    return conv.conv_transpose(g, x, weight, bias, step, sides, more, groups, reach)


def _max_pool2d(
    g: Lowering,
    x: str,
    kernel_size: Numbers = (2, 2),
    stride: Numbers | None = None,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> str:
    if return_indices:
        raise CompileError("max_pool2d: its indices are not supported", try_="return_indices=False")
    w = _windows(_each(kernel_size, 2), stride, dilation, padding)
    return _pool(g, "max_pool2d", x, w, lambda w: MaxPool2d(w.size, w.step, w.around, w.reach, ceil_mode))


def _avg_pool2d(
    g: Lowering,
    x: str,
    kernel_size: Numbers = (2, 2),
    stride: Numbers | None = None,
    dilation: Numbers = 1,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> str:
    w = _windows(_each(kernel_size, 2), stride, dilation, padding)
    if any(d != 1 for d in w.dilations):
        raise CompileError("avg_pool2d: dilation is not supported", have=f"dilation {dilation}", need="dilation 1")
    (x,) = to_float(g, x)
    return _pool(g, "avg_pool2d", x, w, lambda w: AvgPool2d(w.size, w.step, w.around, ceil_mode, count_include_pad))


def _pool(g: Lowering, name: str, x: str, w: Windows, of: Callable[[Windows], MaxPool2d | AvgPool2d]) -> str:
    """Lower a pool over the last dimensions; all dimensions before them are treated alike."""
    if w.dims not in (1, 2):
        raise CompileError(f"{name} over {w.dims} dimensions is not supported", need="1 or 2")
    shape = g.shape(x)
    image = x if len(shape) == w.dims + 2 else shapes.reshape(g, x, (1, -1, *shape[-w.dims :]))
    y = pools.pool(g, image, w, of)
    return shapes.reshape(g, y, (*shape[: -w.dims], *g.shape(y)[-w.dims :]))


# --- norms ----------------------------------------------------------------------------------------------------


def _layernorm(g: Lowering, x: str, axis: Numbers = -1, eps: float = 1e-5) -> str:
    axes, rank = reduce.axes_of(g, x, axis), len(g.shape(x))
    if axes == tuple(range(rank - len(axes), rank)):
        return g.b.add(LayerNorm(axes, eps), x, *norms.affine(g, None, None))
    y = g.b.add(Sub(), x, g.b.add(Mean(axes, True), x))
    spread = g.b.add(Mean(axes, True), g.b.add(Mul(), y, y))
    return g.b.add(Mul(), y, g.b.add(Rsqrt(), elementwise.add(g, spread, eps)))


def _batchnorm(
    g: Lowering, x: str, weight: str | None, bias: str | None, mean: str, invstd: str, axis: Numbers = 1
) -> str:
    """Lower to two constants per channel, if the statistics are constants: x * scale + shift."""
    axes = flat(axis, ())
    column = tuple(n if i in axes else 1 for i, n in enumerate(g.shape(x)))
    inverse = shapes.reshape(g, invstd, column) if len(g.shape(invstd)) == len(axes) else invstd
    known = [known_value(g, t) if t else v for t, v in ((weight, 1.0), (bias, 0.0), (mean, 0), (inverse, 0))]
    if all(v is not None for v in known):
        gamma, beta, centre, factor = (np.asarray(v, np.float64) for v in known)
        scale = (gamma.reshape(column) if weight else gamma) * factor
        shift = (beta.reshape(column) if bias else beta) - centre.reshape(column) * scale
        scaled = g.b.add(Mul(), x, g.b.const("bn_scale", scale.astype(np.float32)))
        return g.b.add(Add(), scaled, g.b.const("bn_shift", shift.astype(np.float32)))
    y = g.b.add(Sub(), x, shapes.reshape(g, mean, column))
    y = g.b.add(Mul(), y, shapes.reshape(g, weight, column)) if weight else y
    y = g.b.add(Mul(), y, inverse)
    return g.b.add(Add(), y, shapes.reshape(g, bias, column)) if bias else y


def _dropout(g: Lowering, x: str, p: float = 0.5) -> str:
    """Return the input, as in inference. A new value would be random."""
    raise CompileError("dropout is in training mode", try_="leave Context(TRAINING=1) out")


def _attention(
    g: Lowering,
    q: str,
    k: str,
    v: str,
    mask: str | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> str:
    return sequence.attention(g, q, k, v, mask, 0.0, is_causal, None, enable_gqa)


# --- layers: what they hold are Tensors, which `value` makes constants of -------------------------------------


def _lstm_cell(g: Any, layer: Any, x: str, states: Sequence[str] | None = None) -> Result:
    biases = [None if t is None else g.value(t) for t in (layer.bias_ih, layer.bias_hh)]
    if states is None:
        zeros = np.zeros((g.shape(x)[0], layer.weight_hh.shape[1]), np.float32)
        states = (g.b.const("state", zeros), g.b.const("state", zeros))
    h, c = states
    return sequence.lstm_cell(g, x, (h, c), g.value(layer.weight_ih), g.value(layer.weight_hh), *biases)


def _affine(g: Any, layer: Any) -> tuple[str | None, str | None]:
    if layer.weight is None or layer.bias is None:
        return None, None
    return g.value(layer.weight), g.value(layer.bias)


def _rms_norm(g: Any, layer: Any, x: str) -> str:
    weight = None if layer.weight is None else g.value(layer.weight)
    return norms.rms_norm(g, x, g.shape(x)[-1:], weight, layer.eps)


ROWS: Mapping[str, Build] = {
    "dot": _dot,
    "matmul": _matmul,
    "linear": _linear,
    "einsum": _einsum,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "layernorm": _layernorm,
    "batchnorm": _batchnorm,
    "dropout": _dropout,
    "scaled_dot_product_attention": _attention,
    "LSTMCell": _lstm_cell,
    "Embedding": lambda g, layer, at: index.embedding(g, g.value(layer.weight), at),
    "GroupNorm": lambda g, layer, x: norms.group_norm(g, x, layer.num_groups, *_affine(g, layer), layer.eps),
    "InstanceNorm": lambda g, layer, x: norms.group_norm(g, x, layer.num_features, *_affine(g, layer), layer.eps),
    "LayerNorm": lambda g, layer, x: norms.layer_norm(g, x, layer.normalized_shape, *_affine(g, layer), layer.eps),
    "RMSNorm": _rms_norm,
}
