"""Operators of a Graph in PyTorch, for training: each computes what its NumPy reference computes, and has a gradient.

A row of `ROWS` is a function of the operator and its inputs, as the Graph has them: without a batch, which
`torch.func.vmap` adds. Operators that only move values, or compute element by element, need no row: their gradients
follow from their NumPy references. All others run by their references and have no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import inf, prod
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as f

from baretorch.ir.graph import Array, Op, Shape
from baretorch.ops.activations import Gelu, Silu
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Clamp, Div, Elementwise, Maximum, Minimum, Mul, Sub
from baretorch.ops.functions import Exp, Sigmoid, Sign, Sqrt, Tanh
from baretorch.ops.index import Gather, IndexSelect
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.logic import Where
from baretorch.ops.matmul import Matmul
from baretorch.ops.move import Cat, Choose, Slice
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.recurrent import Gru, Lstm, Recurrent, Rnn
from baretorch.ops.reduce import Amax, Amin, LogSumExp, Mean, Std, Sum, Var, VectorNorm
from baretorch.ops.scan import CumSum
from baretorch.ops.softmax import LogSoftmax, Softmax
from baretorch.ops.upsample import UpsampleBilinear2d

Row: TypeAlias = Callable[..., Tensor]
STEP = 1e-6  # of a slope, in double precision


def apply(op: Op, inputs: Sequence[Tensor], batched: Sequence[bool]) -> tuple[Tensor, ...]:
    """Return the operator's outputs. Inputs that are `batched` have a first dimension for the batch; so have the
    outputs, if any input has."""
    row = row_of(op)
    if isinstance(op, Recurrent):
        return _recurrent(op, inputs, batched)
    if row is None and isinstance(op, Elementwise) and all(x.is_floating_point() for x in inputs):
        return (_Slopes.apply(op, *_align(inputs, batched)),)
    if row is None or not any(x.is_floating_point() for x in inputs):
        return _by_reference(op, inputs, batched)
    mapped = partial(row, op)
    if any(batched):
        mapped = torch.func.vmap(mapped, tuple(0 if b else None for b in batched))
    return (mapped(*inputs),)


def row_of(op: Op) -> Row | None:
    """Return the operator as a function of tensors; None if only its NumPy reference computes it."""
    return ROWS.get(type(op)) or (_move if not op.computes and not isinstance(op, Elementwise) else None)


def passes_gradient(op: Op) -> bool:
    """Report whether weights before the operator can be trained."""
    return row_of(op) is not None or isinstance(op, (Elementwise, Recurrent))


# --- without rows ------------------------------------------------------------------------------------------


class _Slopes(torch.autograd.Function):  # type: ignore[misc]
    """An elementwise operator by its NumPy reference. Its gradient is the smaller one of the slopes on both sides of a
    value, so that a jump has none."""

    @staticmethod
    def forward(ctx: Any, op: Elementwise, *inputs: Tensor) -> Tensor:
        ctx.op = op
        ctx.save_for_backward(*inputs)
        (y,) = op.reference(*(_array(x) for x in inputs))
        return torch.as_tensor(np.ascontiguousarray(y)).to(inputs[0].device)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        op: Elementwise = ctx.op
        arrays = [_array(x).astype(np.float64) for x in ctx.saved_tensors]
        found: list[Tensor | None] = [None]
        with np.errstate(all="ignore"):
            here = op.value(*arrays)
            for i, (x, own) in enumerate(zip(arrays, ctx.saved_tensors, strict=True)):
                if not ctx.needs_input_grad[1 + i]:
                    found.append(None)
                    continue
                step = STEP * np.maximum(np.abs(x), 1.0)
                sides = [(op.value(*arrays[:i], x + s, *arrays[i + 1 :]) - here) / s for s in (-step, step)]
                slope = np.where(np.abs(sides[0]) < np.abs(sides[1]), *sides)
                slopes = torch.as_tensor(np.nan_to_num(slope).astype(np.float32)).to(own.device)
                found.append((gradient * slopes).sum_to_size(own.shape))
        return tuple(found)


def _align(inputs: Sequence[Tensor], batched: Sequence[bool]) -> list[Tensor]:
    """Return the tensors with dimensions inserted after the batch, so that they broadcast."""
    rank = max(x.dim() - b for x, b in zip(inputs, batched, strict=True))
    return [
        x.reshape(x.shape[0], *(1,) * (rank + 1 - x.dim()), *x.shape[1:]) if b else x
        for x, b in zip(inputs, batched, strict=True)
    ]


def _by_reference(op: Op, inputs: Sequence[Tensor], batched: Sequence[bool]) -> tuple[Tensor, ...]:
    count = next((len(x) for x, b in zip(inputs, batched, strict=True) if b), None)
    each = [[_array(x[i] if b else x) for x, b in zip(inputs, batched, strict=True)] for i in range(count or 1)]
    results = list(zip(*(op.reference(*arrays) for arrays in each), strict=True))
    made = (torch.as_tensor(np.stack(parts) if count is not None else np.array(parts[0])) for parts in results)
    return tuple(y.to(inputs[0].device) for y in made)


def _array(x: Tensor) -> Array:
    return np.asarray(x.detach().cpu().numpy())


def _move(op: Op, *inputs: Tensor) -> Tensor:
    """Compute an operator that only moves values: run its reference on indices, then gather the inputs by these."""
    places, shape = _places(op, tuple(tuple(x.shape) for x in inputs))
    return torch.cat([x.reshape(-1) for x in inputs])[places.to(inputs[0].device)].reshape(shape)


@cache
def _places(op: Op, shapes: tuple[Shape, ...]) -> tuple[Tensor, Shape]:
    sizes = [prod(shape) for shape in shapes]
    numbers = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    (made,) = op.reference(*(n.reshape(shape) for n, shape in zip(numbers, shapes, strict=True)))
    return torch.as_tensor(np.array(made).reshape(-1)), made.shape


# --- layers ------------------------------------------------------------------------------------------------


def _limit(op: Any, y: Tensor) -> Tensor:
    return y if (op.lo, op.hi) == (-inf, inf) else y.clamp(op.lo, op.hi)


def _weights(op: Linear | Conv2d, weight: Tensor) -> Tensor:
    """Return weights as they are stored: float16 weights are rounded, and gradients pass the rounding unchanged."""
    return weight + (weight.detach().half().float() - weight.detach()) if op.half else weight


def _linear(op: Linear, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return _limit(op, f.linear(x, _weights(op, weight), bias))


def _pad_image(x: Tensor, padding: Sequence[int], value: float = 0.0) -> Tensor:
    """Return an image [N, H, W, C] as [N, C, H, W], padded at top, bottom, left and right."""
    top, bottom, left, right = padding
    return f.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom), value=value)


def _conv2d(op: Conv2d, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    kernel = _weights(op, weight).permute(0, 3, 1, 2)
    y = f.conv2d(_pad_image(x, op.padding), kernel, bias, op.stride, 0, op.dilation, op.groups)
    if op.pool != (1, 1):
        y = f.max_pool2d(y, op.pool)
    return _limit(op, y).permute(0, 2, 3, 1)


def _conv_transpose2d(op: ConvTranspose2d, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    kernel = weight.unflatten(0, (op.groups, -1)).permute(0, 4, 1, 2, 3).flatten(0, 1)
    whole = f.conv_transpose2d(
        x.permute(0, 3, 1, 2), kernel, None, op.stride, groups=op.groups, dilation=op.dilation
    ).permute(0, 2, 3, 1)
    y = _pad_image(whole, [-n for n in op.padding]).permute(0, 2, 3, 1)
    return _limit(op, y if bias is None else y + bias)


def _matmul(op: Matmul, a: Tensor, b: Tensor) -> Tensor:
    return _in(_limit(op, _in(a, op.a_dims) @ _in(b, op.b_dims)), op.y_dims)


def _in(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.permute(tuple(dims)) if dims else x


def _attention(op: Attention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    q, k, v = _in(q, op.q_dims), _in(k, op.k_dims), _in(v, op.v_dims)
    scores = op.scale * (q @ k.transpose(-1, -2))
    if mask is not None:
        scores = scores + mask if mask.is_floating_point() else torch.where(mask, scores, -inf)
    if op.causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = torch.where(seen, scores, -inf)
    largest = scores.detach().amax(-1, keepdim=True)
    e = torch.exp(scores - torch.where(largest == -inf, 0.0, largest))
    total = e.sum(-1, keepdim=True)
    return _in((e / torch.where(total == 0, 1.0, total)) @ v, op.y_dims)


# --- recurrent layers --------------------------------------------------------------------------------------


def _recurrent(op: Recurrent, inputs: Sequence[Tensor], batched: Sequence[bool]) -> tuple[Tensor, ...]:
    """Run all samples together in a recurrent layer of PyTorch, which has two biases."""
    count = next(len(x) for x, b in zip(inputs, batched, strict=True) if b)
    x, *state = (i if b else i.expand(count, *i.shape) for i, b in zip(inputs[:-3], batched[:-3], strict=True))
    w_ih, w_hh, bias = inputs[-3:]
    whole = x.movedim(2 if op.batch_first else 1, 0)  # time first
    steps, hidden = whole.flatten(1, 2), w_hh.shape[1]
    begin = [s.reshape(1, -1, hidden) for s in state] or [steps.new_zeros(1, steps.shape[1], hidden)] * op.states
    own, other = bias[: op.gates * hidden], torch.zeros_like(w_ih[:, 0])
    if isinstance(op, Gru):
        other = torch.cat([other[: 2 * hidden], bias[3 * hidden :]])
    weights = [w_ih, w_hh, own, other]
    given = begin if isinstance(op, Lstm) else begin[0]
    layer = torch.lstm if isinstance(op, Lstm) else torch.gru if isinstance(op, Gru) else _rnn(op)
    y, *ends = layer(steps.flip(0) if op.reverse else steps, given, weights, True, 1, 0.0, True, False, False)
    y = (y.flip(0) if op.reverse else y).unflatten(1, whole.shape[1:3])
    return (y.movedim(0, 2 if op.batch_first else 1), *(e.reshape(*whole.shape[1:3], hidden) for e in ends))


def _rnn(op: Recurrent) -> Callable[..., Any]:
    return torch.rnn_relu if isinstance(op, Rnn) and op.relu else torch.rnn_tanh  # type: ignore[no-any-return]


# --- pools, norms, moves -----------------------------------------------------------------------------------


def _max_pool(op: MaxPool2d, x: Tensor) -> Tensor:
    y = f.max_pool2d(_pad_image(x, op.padding, -inf), op.kernel, op.stride, 0, op.dilation, op.ceil_mode)
    return _crop(op, y, x)


def _avg_pool(op: AvgPool2d, x: Tensor) -> Tensor:
    return _sums(op, x) * torch.as_tensor(_shares(op, x.shape[1:3]), device=x.device)


def _sums(op: AvgPool2d, x: Tensor) -> Tensor:
    y = f.avg_pool2d(_pad_image(x, op.padding), op.kernel, op.stride, 0, op.ceil_mode, divisor_override=1)
    return _crop(op, y, x)


@cache
def _shares(op: AvgPool2d, size: Shape) -> Array:
    """Return the factor for the sum of each window."""
    ones = np.ones((1, *size, 1), np.float32)
    (means,), sums = op.reference(ones), _sums(op, torch.as_tensor(ones)).numpy()
    return np.asarray(means / np.maximum(sums, 1.0), np.float32)


def _crop(op: MaxPool2d | AvgPool2d, y: Tensor, x: Tensor) -> Tensor:
    """Return pooled windows with channels last, without those that start in the padding after the image."""
    height, width = _pooled_size(op, tuple(x.shape))
    return y[:, :, :height, :width].permute(0, 2, 3, 1)


@cache
def _pooled_size(op: MaxPool2d | AvgPool2d, shape: Shape) -> Shape:
    return op.reference(np.zeros((1, *shape[1:3], 1), np.float32))[0].shape[1:3]


def _adaptive_avg(op: AdaptiveAvgPool2d, x: Tensor) -> Tensor:
    return f.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), op.size).permute(0, 2, 3, 1)


def _adaptive_max(op: AdaptiveMaxPool2d, x: Tensor) -> Tensor:
    return f.adaptive_max_pool2d(x.permute(0, 3, 1, 2), op.size).permute(0, 2, 3, 1)


def _bilinear(op: UpsampleBilinear2d, x: Tensor) -> Tensor:
    for axis in (0, 1):
        size = x.shape[1 + axis]
        first, share = (torch.as_tensor(a, device=x.device) for a in op.sources(axis, size))
        after = (first + (op.size[axis] != size)).clamp(max=size - 1)
        between = share.reshape(-1, *(1,) * (2 - axis))
        here, there = (x.index_select(1 + axis, i.long()) for i in (first, after))
        x = (1 - between) * here + between * there
    return x


def _layer_norm(op: LayerNorm, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    last = tuple(range(-len(op.axes), 0))
    y = _normalize(x.movedim(op.axes, last), last, op.eps, op.centred)
    return (y * _spread(weight) + _spread(bias)).movedim(last, op.axes)


def _spread(weight: Tensor) -> Tensor:
    return weight.reshape(()) if weight.numel() == 1 else weight


def _group_norm(op: GroupNorm, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    moved = x.movedim(op.axis, 1)
    parts = moved.reshape(moved.shape[0], op.groups, -1)
    column = (-1, *(1,) * (moved.dim() - 2))
    y = _normalize(parts, (-1,), op.eps, True).reshape(moved.shape)
    return (y * weight.reshape(column) + bias.reshape(column)).movedim(1, op.axis)


def _normalize(x: Tensor, axes: tuple[int, ...], eps: float, centred: bool) -> Tensor:
    y = x - x.mean(axes, keepdim=True) if centred else x
    return y * torch.rsqrt(y.square().mean(axes, keepdim=True) + eps)


def _pad(op: Pad, x: Tensor) -> Tensor:
    return f.pad(x, [n for pair in reversed(op.padding) for n in pair], value=op.value)


def _slice(op: Slice, x: Tensor) -> Tensor:
    return x[(slice(None),) * op.axis + (slice(op.start, op.stop, op.step),)]


def _index_select(op: IndexSelect, x: Tensor, index: Tensor) -> Tensor:
    entries = x.index_select(op.axis, _inside(index, x.shape[op.axis]).reshape(-1))
    return entries.reshape(*x.shape[: op.axis], *index.shape, *x.shape[op.axis + 1 :])


def _inside(index: Tensor, size: int) -> Tensor:
    index = index.long()
    return torch.where(index < 0, index + size, index).clamp(0, size - 1)


def _limits(function: Callable[[Tensor, Tensor], Tensor]) -> Row:
    return lambda op, a, b: _limit(op, function(a, b))


ROWS: Mapping[type[Op], Row] = {
    Linear: _linear,
    Conv2d: _conv2d,
    ConvTranspose2d: _conv_transpose2d,
    Matmul: _matmul,
    Attention: _attention,
    MaxPool2d: _max_pool,
    AvgPool2d: _avg_pool,
    AdaptiveAvgPool2d: _adaptive_avg,
    AdaptiveMaxPool2d: _adaptive_max,
    UpsampleBilinear2d: _bilinear,
    LayerNorm: _layer_norm,
    GroupNorm: _group_norm,
    Softmax: lambda op, x: x.softmax(op.axis),
    LogSoftmax: lambda op, x: x.log_softmax(op.axis),
    Sum: lambda op, x: x.sum(op.axes, keepdim=op.keepdim),
    Mean: lambda op, x: x.mean(op.axes, keepdim=op.keepdim),
    Amax: lambda op, x: x.amax(op.axes, keepdim=op.keepdim),
    Amin: lambda op, x: x.amin(op.axes, keepdim=op.keepdim),
    Var: lambda op, x: x.var(op.axes, correction=op.correction, keepdim=op.keepdim),
    Std: lambda op, x: x.std(op.axes, correction=op.correction, keepdim=op.keepdim),
    VectorNorm: lambda op, x: torch.linalg.vector_norm(x, op.ord, op.axes, op.keepdim),
    LogSumExp: lambda op, x: x.logsumexp(op.axes, op.keepdim),
    CumSum: lambda op, x: x.cumsum(op.axis),
    Permute: lambda op, x: x.permute(op.dims),
    Reshape: lambda op, x: x.reshape(op.shape),
    Pad: _pad,
    Slice: _slice,
    Cat: lambda op, *parts: torch.cat(parts, op.axis),
    IndexSelect: _index_select,
    Gather: lambda op, x, index: x.gather(op.axis, _inside(index, x.shape[op.axis])),
    Choose: lambda op, condition, a, b: torch.where(condition.all(), a, b),
    Where: lambda op, condition, a, b: torch.where(condition, a, b),
    Add: _limits(torch.add),
    Sub: _limits(torch.sub),
    Mul: _limits(torch.mul),
    Div: _limits(torch.div),
    Minimum: lambda op, a, b: torch.minimum(a, b),
    Maximum: lambda op, a, b: torch.maximum(a, b),
    Clamp: lambda op, x: _limit(op, x),
    Exp: lambda op, x: x.exp(),
    Sqrt: lambda op, x: x.sqrt(),
    Sign: lambda op, x: x.sign(),
    Sigmoid: lambda op, x: x.sigmoid(),
    Tanh: lambda op, x: x.tanh(),
    Silu: lambda op, x: f.silu(x),
    Gelu: lambda op, x: f.gelu(x, approximate="tanh" if op.tanh else "none"),
}
