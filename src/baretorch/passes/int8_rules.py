"""How each operator becomes its int8 form: a rule adds nodes to the walk, or says that the operator stays float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from baretorch.ir import DType, Node, Op, Quant
from baretorch.ops.arithmetic import dequantize, multipliers, quantize
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Arithmetic, Elementwise, Mul, Sub
from baretorch.ops.index import Gather, IndexSelect
from baretorch.ops.kernel import data_of
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.lookup import Lookup
from baretorch.ops.move import Cat, Copy, Slice, SliceScatter
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.qbinary import product_of, sum_of
from baretorch.ops.qconv2d import QConv2d
from baretorch.ops.qlinear import QLinear
from baretorch.ops.qpool import QAvgPool2d
from baretorch.ops.qsoftmax import LONGEST, RESULT, QSoftmax
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from baretorch.ops.upsample import UpsampleNearest2d
from baretorch.ops.window import Padding, Pair
from baretorch.passes.int8_walk import EVERY, Walk

# The output is made of the input's own values.
MOVES = (
    Reshape,
    Permute,
    Expand,
    Flip,
    Slice,
    SliceScatter,
    Cat,
    Copy,
    Gather,
    IndexSelect,
    UpsampleNearest2d,
)


def limits(lo: float, hi: float, quant: Quant) -> tuple[int, int]:
    """Real limits as stored numbers."""
    low, high = quantize(np.array([lo, hi], np.float32), quant.scale[0], quant.zero_point[0])
    return int(low), int(high)


def _layer(walk: Walk, node: Node) -> bool:
    """linear and conv2d: int8 weights, int32 biases with the input's zero point folded in, multipliers."""
    op = node.op
    assert isinstance(op, (Linear, Conv2d))
    w = walk.graph[node.inputs[1]]
    x, y = walk.quant(node.inputs[0]), walk.quant(node.outputs[0])
    if x is None or y is None or w.quant is None or w.data is None or any(w.quant.zero_point):
        return False
    if len(node.inputs) > 2 and walk.graph[node.inputs[2]].data is None:
        return False
    if w.quant.axis not in (None, 0):
        return False
    channels = w.shape[0]
    s_w = np.broadcast_to(np.array(w.quant.scale, np.float64), (channels,))
    s_x, z_x, s_y, z_y = x.scale[0], x.zero_point[0], y.scale[0], y.zero_point[0]
    column = (-1, *(1,) * (len(w.shape) - 1))
    stored = np.rint(w.data.astype(np.float64) / s_w.reshape(column)).astype(np.int8)
    bias = walk.graph[node.inputs[2]].data if len(node.inputs) > 2 else np.zeros(channels)
    assert bias is not None
    sums = stored.reshape(channels, -1).astype(np.int64).sum(axis=1)
    whole = np.clip(np.rint(bias / (s_x * s_w)) - z_x * sums, -(2**31), 2**31 - 1)
    multiplier, shift = multipliers([float(f) for f in s_x * s_w / s_y])
    lo, hi = limits(op.lo, op.hi, y)
    constants = (
        walk.constant(w, "int8", stored),
        walk.constant(w, "bias", whole.astype(np.int32)),
        walk.constant(w, "multiplier", multiplier),
    )
    if isinstance(op, Linear):
        made: Op = QLinear(z_y, shift, lo, hi)
    else:
        made = QConv2d(z_x, z_y, shift, lo, hi, op.stride, op.padding, op.dilation, op.groups, op.pool)
    return walk.emit(node, made, walk.int8(node.inputs[0]), *constants)


def _move(walk: Walk, node: Node) -> bool:
    """The same operator on stored bytes. Inputs of other scales get the output's; an output without one gets theirs."""
    (out,) = node.outputs
    values = [n for n in node.inputs if walk.graph[n].dtype is DType.FLOAT32]  # the rest are indices
    quants = {walk.quant(n) for n in values}
    if len(quants) == 1 and walk.quant(out) is None and None not in quants:
        walk.found[out] = next(q for q in quants if q is not None)
    y = walk.quant(out)
    if y is None or None in quants or not values:
        return False
    return walk.emit(node, node.op, *(walk.rescaled(n, y) if n in values else walk.real(n) for n in node.inputs))


def _max_pool(walk: Walk, node: Node) -> bool:
    assert isinstance(node.op, MaxPool2d)
    return node.op.dilation == (1, 1) and _move(walk, node)


def _pad(walk: Walk, node: Node) -> bool:
    op = node.op
    assert isinstance(op, Pad)
    noted = walk.quant(node.outputs[0])
    quant = noted or walk.quant(node.inputs[0])
    if quant is None or (noted is None and op.value != 0):  # an own scale always has 0, but not every number
        return False
    stored = quantize(np.array(op.value, np.float32), quant.scale[0], quant.zero_point[0])
    return _move(walk, replace(node, op=replace(op, value=float(stored))))


def _elementwise(walk: Walk, node: Node) -> bool:
    """Functions of one tensor are tables, and so is a sum or product with one number; others have kernels."""
    varying = [n for n in node.inputs if walk.graph[n].data is None]
    single = all(walk.graph[n].count == 1 for n in node.inputs if n not in varying)
    if len(varying) == 1 and single:
        return _table(walk, node, varying[0])
    return isinstance(node.op, (Add, Sub, Mul)) and _arithmetic(walk, node)


def _table(walk: Walk, node: Node, varying: str) -> bool:
    """A function of one value: computed here for all 256."""
    (out,) = node.outputs
    x, y = walk.quant(varying), walk.quant(out)
    if x is None or y is None or walk.graph[varying].shape != walk.graph[out].shape:
        return False
    every = dequantize(EVERY, x.scale[0], x.zero_point[0])
    (values,) = node.op.reference(*(every if n == varying else data_of([walk.graph[n]], 0) for n in node.inputs))
    return walk.emit(node, Lookup(), walk.int8(varying), walk.table(out, values.reshape(-1), y))


def _arithmetic(walk: Walk, node: Node) -> bool:
    op = node.op
    assert isinstance(op, Arithmetic)
    a, b, y = (walk.quant(n) for n in (*node.inputs, *node.outputs))
    if a is None or b is None or y is None:
        return False
    made = product_of(a, b, y) if isinstance(op, Mul) else sum_of(a, b, y, -1 if isinstance(op, Sub) else 1)
    if made is None:
        return False
    lo, hi = limits(op.lo, op.hi, y)
    return walk.emit(node, replace(made, lo=lo, hi=hi), *map(walk.int8, node.inputs))


def _avg_pool(walk: Walk, node: Node) -> bool:
    """Where every window divides by the same number."""
    op = node.op
    assert isinstance(op, AvgPool2d)
    size, out = walk.graph[node.inputs[0]].shape[1:3], walk.graph[node.outputs[0]].shape[1:3]
    padded = any(op.padding)
    if op.kernel == size and not padded:
        return _mean_of(walk, node, 1, 3, op.divisor or prod(size))
    sides = zip(out, op.kernel, op.stride, size, op.padding[::2], op.padding[1::2], strict=True)
    cut = any((n - 1) * stride + kernel > s + before + after for n, kernel, stride, s, before, after in sides)
    if cut or (padded and not op.count_include_pad and not op.divisor):
        return False
    pool = _pool(walk, node, op.kernel, op.stride, op.padding, op.divisor or prod(op.kernel))
    return pool is not None and walk.emit(node, pool, walk.int8(node.inputs[0]))


def _mean(walk: Walk, node: Node) -> bool:
    """Over axes that are neighbours."""
    op = node.op
    assert isinstance(op, Mean)
    first, last = min(op.axes, default=0), max(op.axes, default=-1)
    if not op.axes or last - first + 1 != len(op.axes):
        return False
    return _mean_of(walk, node, first, last + 1, prod(walk.graph[node.inputs[0]].shape[first : last + 1]))


def _mean_of(walk: Walk, node: Node, first: int, end: int, divisor: int) -> bool:
    """The pool of an image whose only row are the axes from `first` to before `end`."""
    (x,), (out,) = node.inputs, node.outputs
    shape = walk.graph[x].shape
    outer, count, inner = prod(shape[:first]), prod(shape[first:end]), prod(shape[end:])
    pool = _pool(walk, node, (1, count), (1, 1), (0, 0, 0, 0), divisor)
    if pool is None:
        return False
    row, pixel = (outer, 1, count, inner), (outer, 1, 1, inner)
    image = walk.add(Reshape(row), x, row, walk.quant(x), walk.int8(x))
    pooled = walk.add(pool, out, pixel, walk.quant(out), image)
    return walk.emit(node, Reshape(walk.graph[out].shape), pooled)


def _pool(walk: Walk, node: Node, kernel: Pair, stride: Pair, padding: Padding, divisor: int) -> QAvgPool2d | None:
    """The average with the node's scales; None if it has none, or its sums would leave 32 bits."""
    x, y = walk.quant(node.inputs[0]), walk.quant(node.outputs[0])
    if x is None or y is None or walk.graph[node.inputs[0]].count == 0:
        return None
    multiplier, shift = multipliers([x.scale[0] / (y.scale[0] * divisor)])
    if 255 * prod(kernel) << shift >= 1 << 31:
        return None
    return QAvgPool2d(kernel, stride, x.zero_point[0], int(multiplier[0]), shift, y.zero_point[0], padding)


def _softmax(walk: Walk, node: Node) -> bool:
    """Along the last axis."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Softmax)
    shape, quant, y = walk.graph[x].shape, walk.quant(x), walk.quant(out)
    if type(op) is not Softmax or quant is None or y is None or op.axis != len(shape) - 1:
        return False
    if not 0 < shape[-1] <= LONGEST:
        return False
    made = QSoftmax(quant.scale[0])
    if y == RESULT:
        return walk.emit(node, made, walk.int8(x))
    shares = walk.add(made, out, shape, RESULT, walk.int8(x))
    values = dequantize(EVERY, RESULT.scale[0], RESULT.zero_point[0])
    return walk.emit(node, Lookup(), shares, walk.table(out, values, y))


RULES: tuple[tuple[type | tuple[type, ...], Callable[[Walk, Node], bool]], ...] = (
    ((Linear, Conv2d), _layer),
    (MOVES, _move),
    (MaxPool2d, _max_pool),
    (Pad, _pad),
    (Elementwise, _elementwise),
    (AvgPool2d, _avg_pool),
    (Mean, _mean),
    (Softmax, _softmax),
)
