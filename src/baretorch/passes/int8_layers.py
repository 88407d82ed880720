"""int8 forms of operators that multiply and add: layers with weights, products of activations, attention, norms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import e as E
from math import log2, prod

import numpy as np

from baretorch.ir import Array, DType, Node, Op, Quant
from baretorch.ops.arithmetic import multipliers, quantize
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.fixed import ToFixed
from baretorch.ops.kernel import data_of
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.matmul import Matmul
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.qattention import BITS, attention_of, mask_of
from baretorch.ops.qconv2d import QConv2d
from baretorch.ops.qconv_transpose2d import QConvTranspose2d
from baretorch.ops.qlinear import QLinear
from baretorch.ops.qmatmul import matmul_of
from baretorch.ops.qnorm import LONGEST, QNorm, affine_of, eps_of
from baretorch.passes.int8_walk import StaysFloat, Walk
from baretorch.passes.rewrite import fresh

ROWS = 3  # of a linear layer, from which on convolutions are faster
LARGEST_BIAS = 2**28  # in an accumulator: a multiplier then loses less than a step's 32nd part of it
PRODUCT = 255 * 255  # the largest of two numbers less their zero points


def limits(lo: float, hi: float, quant: Quant) -> tuple[int, int]:
    """Real limits as stored numbers."""
    low, high = quantize(np.array([lo, hi], np.float32), quant.scale[0], quant.zero_point[0])
    return int(low), int(high)


def fits_32_bits(largest: int) -> None:
    if largest >= 1 << 31:
        raise StaysFloat("its sums could leave 32 bits")


def layer(walk: Walk, node: Node) -> None:
    """linear, conv2d, conv_transpose2d: int8 weights, int32 biases, multipliers. But for transposed convolutions the
    input's zero point is folded into the bias."""
    op = node.op
    assert isinstance(op, (Linear, Conv2d, ConvTranspose2d))
    x, y = walk.scale(node.inputs[0]), walk.scale(node.outputs[0])
    w, *biases = walk.graph.of(node.inputs[1:])
    if w.data is None or any(b.data is None for b in biases):
        raise StaysFloat("its weight or bias is computed")
    if w.quant is None or w.quant.axis not in (None, 0) or any(w.quant.zero_point):
        raise StaysFloat("its weight has no symmetric int8 scale")
    channels = w.shape[0]
    s_x, z_x, s_y, z_y = x.scale[0], x.zero_point[0], y.scale[0], y.zero_point[0]
    real = w.data.reshape(channels, -1).astype(np.float64)
    given = data_of(biases, 0).astype(np.float64) if biases else np.zeros(channels)
    bias = reachable(given, real, s_x, s_y)
    s_w = weight_scales(np.array(w.quant.scale), real, bias, s_x, s_y)
    stored = np.rint(real / s_w[:, None]).astype(np.int8).reshape(w.shape)
    rows = stored.reshape(channels, -1).astype(np.int64)
    folded = 0 if isinstance(op, ConvTranspose2d) else z_x * rows.sum(axis=1)
    whole = np.rint(bias / (s_x * s_w)) - folded
    multiplier, shift = multipliers([float(f) for f in s_x * s_w / s_y])
    fits_32_bits(int((np.abs(whole) + 255 * np.abs(rows).sum(axis=1)).max(initial=0)) << shift)
    lo, hi = limits(op.lo, op.hi, y)
    constants = (
        walk.constant(w, "int8", stored),
        walk.constant(w, "bias", whole.astype(np.int32)),
        walk.constant(w, "multiplier", multiplier),
    )
    if isinstance(op, Linear) and prod(walk.graph[node.inputs[0]].shape[:-1]) >= ROWS:
        _pixels(walk, node, QConv2d(z_x, z_y, shift, lo, hi), *constants)
        return
    if isinstance(op, Linear):
        made: Op = QLinear(z_y, shift, lo, hi)
    elif isinstance(op, Conv2d):
        made = QConv2d(z_x, z_y, shift, lo, hi, op.stride, op.padding, op.dilation, op.groups, op.pool)
    else:
        made = QConvTranspose2d(z_x, z_y, shift, lo, hi, op.stride, op.padding, op.dilation, op.groups)
    walk.emit(node, made, walk.int8(node.inputs[0]), *constants)


def reachable(biases: Array, weights: Array, s_x: float, s_y: float) -> Array:
    """Biases, as far as they matter: beyond, the output is at its limit whatever the input is."""
    reach = 255 * s_x * np.abs(weights).sum(axis=1) + 512 * s_y
    return np.clip(biases, -reach, reach)


def weight_scales(scales: Array, weights: Array, biases: Array, s_x: float, s_y: float) -> Array:
    """The scales of a layer's rows of weights, such that each bias fits into 32 bits beside them. A row of zeros may
    have any; it gets one that leaves its bias ten bits behind the point of the output."""
    scales = np.where(weights.any(axis=1), scales, s_y / (s_x * 2**10))
    return np.maximum(scales, np.abs(biases) / (s_x * LARGEST_BIAS))


def _pixels(walk: Walk, node: Node, op: QConv2d, weight: str, bias: str, multiplier: str) -> None:
    """A linear layer of several rows, as a convolution of as many pixels: its kernels take several at a time."""
    (out,), x = node.outputs, node.inputs[0]
    *outer, in_ = walk.graph[x].shape
    shape = walk.graph[out].shape
    taps = walk.constant(walk.graph[node.inputs[1]], "int8", data_of([walk.new[weight]], 0).reshape(-1, 1, 1, in_))
    image = walk.view(Reshape((1, prod(outer), 1, in_)), x, walk.int8(x))
    made = walk.add(op, out, (1, prod(outer), 1, shape[-1]), walk.scale(out), image, taps, bias, multiplier)
    walk.stored[out] = walk.view(Reshape(shape), out, made)


@dataclass(frozen=True)
class _Channels:
    """A constant of a sum or product with one number for each channel: the input that varies, the axis of channels, and
    the numbers."""

    x: str
    axis: int
    numbers: Array


def affine(walk: Walk, node: Node) -> bool:
    """A factor and a summand for each channel, as a BatchNorm by itself has them: a depthwise convolution of single
    pixels. False if the node is no such sum, or product."""
    op, (out,) = node.op, node.outputs
    assert isinstance(op, (Add, Mul))
    last = _by_channel(walk, node)
    first = None
    if last is not None and isinstance(op, Add) and walk.quant(last.x) is None:
        before = walk.graph.producer().get(last.x)
        first = _by_channel(walk, before) if before is not None and before.op == Mul() else None
        if first is None or first.axis != last.axis:
            return False
    if last is None:
        return False
    x, axis, ones = first.x if first else last.x, last.axis, np.ones(len(last.numbers))
    quant, y = walk.quant(x), walk.quant(out)
    if quant is None or y is None:
        return False
    factor = last.numbers if isinstance(op, Mul) else first.numbers if first else ones
    summand = last.numbers if isinstance(op, Add) else 0 * ones
    s_x, z_x = quant.scale[0], quant.zero_point[0]
    summand = reachable(summand, factor[:, None], s_x, y.scale[0])
    s_w = weight_scales(np.abs(factor) / 127, factor[:, None], summand, s_x, y.scale[0])
    stored = np.rint(factor / s_w)
    bias = np.rint(summand / (s_x * s_w)) - z_x * stored
    multiplier, shift = multipliers([float(f) for f in s_x * s_w / y.scale[0]])
    fits_32_bits(int((np.abs(bias) + 255 * np.abs(stored)).max(initial=0)) << shift)
    lo, hi = limits(op.lo, op.hi, y)
    constants = (
        walk.constant(walk.graph[out], "int8", stored.astype(np.int8).reshape(-1, 1, 1, 1)),
        walk.constant(walk.graph[out], "bias", bias.astype(np.int32)),
        walk.constant(walk.graph[out], "multiplier", multiplier),
    )
    shape = walk.graph[out].shape
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    pixels = (1, prod(shape) // shape[axis], 1, shape[axis])
    image = walk.view(Reshape(pixels), x, walk.view(Permute(order), x, walk.int8(x)))
    made = QConv2d(z_x, y.zero_point[0], shift, lo, hi, groups=shape[axis])
    whole = walk.view(Reshape(tuple(shape[i] for i in order)), out, walk.add(made, out, pixels, y, image, *constants))
    walk.stored[out] = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, whole)
    return True


def _by_channel(walk: Walk, node: Node) -> _Channels | None:
    (out,) = node.outputs
    varying = [n for n in node.inputs if walk.graph[n].data is None]
    constants = [t for t in walk.graph.of(node.inputs) if t.data is not None and t.quant is None]
    if len(varying) != 1 or len(constants) != 1 or walk.graph[varying[0]].shape != walk.graph[out].shape:
        return None
    (t,), rank = constants, len(walk.graph[out].shape)
    axis = next((rank - len(t.shape) + i for i, n in enumerate(t.shape) if n == t.count), None)
    if axis is None or walk.graph[out].shape[axis] != t.count:
        return None
    return _Channels(varying[0], axis, data_of(constants, 0).astype(np.float64).reshape(-1))


def matmul(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Matmul)
    a, b, y = (walk.scale(n) for n in (*node.inputs, *node.outputs))
    lo, hi = limits(op.lo, op.hi, y)
    made = matmul_of(op, a, b, y, lo, hi)
    fits_32_bits(PRODUCT * op.operands(walk.graph.of(node.inputs))[0][-1] << made.shift)
    walk.emit(node, made, *map(walk.int8, node.inputs))


def attention(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Attention)
    q, k, v, *mask = node.inputs
    made = attention_of(op, walk.scale(q), walk.scale(k), walk.scale(v), walk.scale(node.outputs[0]))
    fits_32_bits(PRODUCT * op.seen(walk.graph.of(node.inputs))[0][-1] << made.score_shift)
    masks = [_mask(walk, name) for name in mask]
    walk.emit(node, made, *map(walk.int8, (q, k, v)), *masks)


def _mask(walk: Walk, name: str) -> str:
    """As `QAttention` takes it: truth values, or steps; those of a mask that is computed are computed too."""
    t = walk.graph[name]
    if t.data is not None:
        return walk.constant(t, "steps", mask_of(t.data))
    if t.dtype is DType.BOOL:
        return walk.real(name)
    powers, steps = (fresh(walk.graph, walk.new, f"{name}_{suffix}") for suffix in ("powers", "steps"))
    walk.new[powers] = replace(t, name=powers, quant=None)
    walk.new[steps] = replace(t, name=steps, quant=None, dtype=DType.INT16)
    factor = walk.constant(t, "log2_e", np.array(log2(E), np.float32))
    walk.nodes += (Node(Mul(), (walk.real(name), factor), (powers,)), Node(ToFixed(BITS), (powers,), (steps,)))
    return steps


def norm(walk: Walk, node: Node) -> None:
    """layer_norm and group_norm: what belongs together is moved to [batch, places, groups, depth]."""
    op, (x, *affine), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, (LayerNorm, GroupNorm))
    shape = walk.graph[x].shape
    axes = op.axes if isinstance(op, LayerNorm) else (op.axis,)
    order = (*(i for i in range(len(shape)) if i not in axes), *axes)
    depth = prod(shape[a] for a in axes)
    if isinstance(op, LayerNorm):
        parts = (prod(shape) // max(depth, 1), 1, 1, depth)
    else:
        parts = (shape[0], prod(shape[1:]) // max(depth, 1), op.groups, depth // op.groups)
    count = parts[1] * parts[3]
    if not 0 < count <= LONGEST:
        raise StaysFloat(f"it normalises {count} numbers together, and int8 norms do up to {LONGEST}")
    s_x, z_x, y = walk.scale(x).scale[0], walk.scale(x).zero_point[0], walk.scale(out)
    if any(walk.graph[n].data is None for n in affine):
        raise StaysFloat("its weight or bias is computed")
    weight, bias = (_spread(data_of(walk.graph.of(affine), i), depth) for i in range(2))
    stored = affine_of(weight, bias, y)
    eps = eps_of(op.eps, count, s_x)
    if stored is None or eps >= 1 << 61:
        raise StaysFloat("its weights are too large for the scale of its output")
    made = QNorm(z_x, eps, not isinstance(op, LayerNorm) or op.centred)
    constants = [walk.constant(walk.graph[n], "int8", data) for n, data in zip(affine, stored, strict=True)]
    moved = walk.view(Permute(order), x, walk.int8(x))
    normal = walk.add(made, out, parts, y, walk.view(Reshape(parts), x, moved), *constants)
    whole = walk.view(Reshape(tuple(shape[i] for i in order)), out, normal)
    walk.found[out] = y
    walk.stored[out] = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, whole)


def _spread(data: Array, depth: int) -> Array:
    """One per number that is normalised."""
    return np.broadcast_to(data.reshape(-1), (depth,))
