"""How each operator becomes its int8 form: a rule adds nodes to the walk, or says why the operator stays float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from baretorch.ir import DType, Node, Op, Quant
from baretorch.ops.arithmetic import dequantize, multipliers, quantize
from baretorch.ops.attention import Attention
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.elementwise import Add, Arithmetic, Elementwise, Maximum, Minimum, Mul, Sub
from baretorch.ops.index import Gather, IndexSelect
from baretorch.ops.kernel import data_of
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.logic import Cast, Comparison, Where
from baretorch.ops.lookup import Lookup
from baretorch.ops.matmul import Matmul
from baretorch.ops.move import Cat, Copy, Slice, SliceScatter
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.qbinary import product_of, sum_of
from baretorch.ops.qpool import QAvgPool2d
from baretorch.ops.qsoftmax import LONGEST, RESULT, QSoftmax
from baretorch.ops.quantize import Dequantize
from baretorch.ops.qupsample import QUpsampleBilinear2d
from baretorch.ops.recurrent import Recurrent
from baretorch.ops.reduce import Amax, Mean, Reduction, Sum
from baretorch.ops.softmax import Softmax
from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d
from baretorch.ops.window import Padding, Pair
from baretorch.passes import int8_layers as layers
from baretorch.passes.int8_layers import fits_32_bits, limits
from baretorch.passes.int8_recurrent import recurrent
from baretorch.passes.int8_walk import EVERY, StaysFloat, Walk

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


def _move(walk: Walk, node: Node) -> None:
    """The same operator on stored bytes. Inputs of other scales get the output's; an output without one gets theirs."""
    (out,) = node.outputs
    values = [n for n in node.inputs if walk.graph[n].dtype is DType.FLOAT32]  # the rest are indices and conditions
    quants = [walk.scale(n) for n in values]
    if quants and walk.quant(out) is None and all(q == quants[0] for q in quants):
        walk.found[out] = quants[0]
    y = walk.scale(out)
    walk.emit(node, node.op, *(walk.rescaled(n, y) if n in values else walk.real(n) for n in node.inputs))


def _max_pool(walk: Walk, node: Node) -> None:
    assert isinstance(node.op, MaxPool2d)
    if node.op.dilation != (1, 1):
        raise StaysFloat("there is no int8 max pool with dilation")
    _move(walk, node)


def _pad(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Pad)
    noted = walk.quant(node.outputs[0])
    quant = noted or walk.scale(node.inputs[0])
    if noted is None and op.value != 0:  # an own scale always has 0, but not every number
        raise StaysFloat(f"{op.value} was not measured for its scale")
    stored = quantize(np.array(op.value, np.float32), quant.scale[0], quant.zero_point[0])
    _move(walk, replace(node, op=replace(op, value=float(stored))))


def _bilinear(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, UpsampleBilinear2d)
    _move(walk, replace(node, op=QUpsampleBilinear2d(op.size, op.step, op.align_corners)))


def _elementwise(walk: Walk, node: Node) -> None:
    """Functions of one tensor are tables, and so is a sum or product with one number; others have kernels."""
    varying = [n for n in node.inputs if walk.graph[n].data is None]
    if len(varying) == 1 and _single(walk, node) and walk.graph[varying[0]].shape == walk.graph[node.outputs[0]].shape:
        _table(walk, node, varying[0])
    elif isinstance(node.op, (Add, Sub, Mul)):
        _arithmetic(walk, node)
    elif isinstance(node.op, (Minimum, Maximum, Where)):
        _move(walk, node)
    else:
        raise StaysFloat(f"there is no int8 {node.op.name} of several tensors")


def _comparison(walk: Walk, node: Node) -> None:
    """With one number by a table of truth values, of two tensors with the same scale by their bytes."""
    (out,) = node.outputs
    varying = [n for n in node.inputs if walk.graph[n].data is None]
    quants = [walk.scale(n) for n in varying]
    if len(quants) == 2 and quants[0] == quants[1]:
        walk.nodes.append(Node(node.op, tuple(map(walk.int8, node.inputs)), (out,)))
    elif len(quants) == 1 and walk.graph[varying[0]].shape == walk.graph[out].shape and _single(walk, node):
        every = dequantize(EVERY, quants[0].scale[0], quants[0].zero_point[0])
        (truth,) = node.op.reference(*(every if n in varying else data_of(walk.graph.of([n]), 0) for n in node.inputs))
        table = walk.constant(walk.graph[varying[0]], "table", truth.astype(np.int8))
        stored = walk.add(Lookup(), varying[0], walk.graph[out].shape, None, walk.int8(varying[0]), table)
        walk.nodes.append(Node(Cast("bool"), (stored,), (out,)))
    else:
        raise StaysFloat("there is no int8 comparison of tensors with different scales")
    walk.floats.add(out)


def _single(walk: Walk, node: Node) -> bool:
    """Every constant among the inputs is one number."""
    return all(t.data is None or t.count == 1 for t in walk.graph.of(node.inputs))


def _table(walk: Walk, node: Node, varying: str) -> None:
    """A function of one value: computed here for all 256."""
    (out,) = node.outputs
    x, y = walk.scale(varying), walk.scale(out)
    every = dequantize(EVERY, x.scale[0], x.zero_point[0])
    (values,) = node.op.reference(*(every if n == varying else data_of([walk.graph[n]], 0) for n in node.inputs))
    walk.emit(node, Lookup(), walk.int8(varying), walk.table(out, values.reshape(-1), y))


def _arithmetic(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Arithmetic)
    a, b, y = (walk.scale(n) for n in (*node.inputs, *node.outputs))
    made = product_of(a, b, y) if isinstance(op, Mul) else sum_of(a, b, y, -1 if isinstance(op, Sub) else 1)
    if made is None:
        raise StaysFloat("an input's scale is 64 times its output's or more")
    lo, hi = limits(op.lo, op.hi, y)
    walk.emit(node, replace(made, lo=lo, hi=hi), *map(walk.int8, node.inputs))


def _avg_pool(walk: Walk, node: Node) -> None:
    """Where every window divides by the same number."""
    op = node.op
    assert isinstance(op, AvgPool2d)
    size, out = walk.graph[node.inputs[0]].shape[1:3], walk.graph[node.outputs[0]].shape[1:3]
    padded = any(op.padding)
    if op.kernel == size and not padded:
        _over(walk, node, 1, 3, _average(walk, node, (1, prod(size)), op.divisor or prod(size)))
        return
    sides = zip(out, op.kernel, op.stride, size, op.padding[::2], op.padding[1::2], strict=True)
    cut = any((n - 1) * stride + kernel > s + before + after for n, kernel, stride, s, before, after in sides)
    if cut or (padded and not op.count_include_pad and not op.divisor):
        raise StaysFloat("its windows divide by different numbers")
    pool = _average(walk, node, op.kernel, op.divisor or prod(op.kernel), op.stride, op.padding)
    walk.emit(node, pool, walk.int8(node.inputs[0]))


def _reduce(walk: Walk, node: Node) -> None:
    """Sum, mean and maximum over axes that are neighbours."""
    op = node.op
    assert isinstance(op, Reduction)
    first, last = min(op.axes, default=0), max(op.axes, default=-1)
    if not op.axes or last - first + 1 != len(op.axes):
        raise StaysFloat("the axes that it reduces are not neighbours")
    count = prod(walk.graph[node.inputs[0]].shape[first : last + 1])
    if isinstance(op, Amax):
        walk.found[node.outputs[0]] = walk.scale(node.inputs[0])
        _over(walk, node, first, last + 1, MaxPool2d((1, count), (1, 1)))
    else:
        divisor = count if isinstance(op, Mean) else 1
        _over(walk, node, first, last + 1, _average(walk, node, (1, count), divisor))


def _over(walk: Walk, node: Node, first: int, end: int, pool: Op) -> None:
    """The pool of an image whose only row are the axes from `first` to before `end`."""
    (x,), (out,) = node.inputs, node.outputs
    shape = walk.graph[x].shape
    outer, count, inner = prod(shape[:first]), prod(shape[first:end]), prod(shape[end:])
    image = walk.view(Reshape((outer, 1, count, inner)), x, walk.int8(x))
    pooled = walk.add(pool, out, (outer, 1, 1, inner), walk.quant(out), image)
    walk.emit(node, Reshape(walk.graph[out].shape), pooled)


def _average(
    walk: Walk, node: Node, kernel: Pair, divisor: int, stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0)
) -> QAvgPool2d:
    """The average with the node's scales."""
    x, y = walk.scale(node.inputs[0]), walk.scale(node.outputs[0])
    if walk.graph[node.inputs[0]].count == 0:
        raise StaysFloat("it has no input")
    multiplier, shift = multipliers([x.scale[0] / (y.scale[0] * divisor)])
    fits_32_bits(255 * prod(kernel) << shift)
    return QAvgPool2d(kernel, stride, x.zero_point[0], int(multiplier[0]), shift, y.zero_point[0], padding)


def _softmax(walk: Walk, node: Node) -> None:
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Softmax)
    shape, quant, y = walk.graph[x].shape, walk.scale(x), walk.scale(out)
    if type(op) is not Softmax:
        raise StaysFloat(f"there is no int8 {op.name}")
    if not 0 < shape[op.axis] <= LONGEST:
        raise StaysFloat(f"it has {shape[op.axis]} numbers in a row, and an int8 softmax up to {LONGEST}")
    order = (*(i for i in range(len(shape)) if i != op.axis), op.axis)
    rows = walk.view(Permute(order), x, walk.int8(x))
    shares = walk.add(QSoftmax(quant.scale[0]), out, walk.new[rows].shape, RESULT, rows)
    back = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, shares)
    if y != RESULT:
        values = dequantize(EVERY, RESULT.scale[0], RESULT.zero_point[0])
        back = walk.add(Lookup(), out, shape, y, back, walk.table(out, values, y))
    walk.stored[out] = back


def _dequantize(walk: Walk, node: Node) -> None:
    """int8 numbers that get another scale: a table."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Dequantize)
    y = walk.scale(out)
    if y == Quant((op.scale,), (op.zero,)):
        walk.stored[out] = x
    else:
        walk.emit(node, Lookup(), x, walk.table(out, dequantize(EVERY, op.scale, op.zero), y))


RULES: tuple[tuple[type | tuple[type, ...], Callable[[Walk, Node], None]], ...] = (
    ((Linear, Conv2d, ConvTranspose2d), layers.layer),
    (Matmul, layers.matmul),
    (Attention, layers.attention),
    ((LayerNorm, GroupNorm), layers.norm),
    (MOVES, _move),
    (MaxPool2d, _max_pool),
    (Pad, _pad),
    (UpsampleBilinear2d, _bilinear),
    (Comparison, _comparison),
    (Elementwise, _elementwise),
    (AvgPool2d, _avg_pool),
    ((Mean, Sum, Amax), _reduce),
    (Softmax, _softmax),
    (Recurrent, recurrent),
    (Dequantize, _dequantize),
)
