"""How each operator becomes its int8 form: a rule adds nodes to the walk, or says why the operator stays float."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from baretorch.ir import Node, Quant
from baretorch.ops.arithmetic import dequantize, quantize
from baretorch.ops.attention import Attention
from baretorch.ops.choose import Choose
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.conv_transpose2d import ConvTranspose2d
from baretorch.ops.depth import DepthWindows
from baretorch.ops.elementwise import Add, Arithmetic, Div, Elementwise, Maximum, Minimum, Mul, Sub
from baretorch.ops.index import Gather, IndexSelect
from baretorch.ops.kernel import data_of
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape, Unfold
from baretorch.ops.linear import Linear
from baretorch.ops.logic import Cast, Comparison, Where
from baretorch.ops.lookup import Lookup
from baretorch.ops.matmul import Matmul
from baretorch.ops.move import Cat, Copy, Slice, SliceScatter
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.qbinary import QAdd, QDiv, QMul, product_of, quotient_of, sum_of
from baretorch.ops.qsoftmax import LONGEST, POINT, RESULT, QLogSoftmax, QSoftmax, log_softmax_of
from baretorch.ops.quantize import Dequantize
from baretorch.ops.qupsample import QUpsampleBilinear2d
from baretorch.ops.recurrent import Recurrent
from baretorch.ops.reduce import Amax, Mean, Sum
from baretorch.ops.softmax import Softmax
from baretorch.ops.upsample import UpsampleBilinear2d, UpsampleNearest2d
from baretorch.passes import int8_layers as layers
from baretorch.passes import int8_pools as pools
from baretorch.passes.int8_layers import fits_32_bits, limits
from baretorch.passes.int8_recurrent import recurrent
from baretorch.passes.int8_walk import EVERY, Function, NoInt8, StaysFloat, Walk

# The output is made of the input's own values.
MOVES = (
    Reshape,
    Permute,
    Expand,
    Flip,
    Unfold,
    Slice,
    SliceScatter,
    Cat,
    Copy,
    Gather,
    IndexSelect,
    UpsampleNearest2d,
    DepthWindows,
    Choose,
)


def _move(walk: Walk, node: Node) -> None:
    walk.same(node, node.op)


def _pad(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Pad)
    noted = walk.quant(node.outputs[0])
    quant = noted or walk.scale(node.inputs[0])
    if noted is None and op.value != 0:  # an own scale always has 0, but not every number
        raise StaysFloat(f"{op.value} was not measured for its scale")
    stored = quantize(np.array(op.value, np.float32), quant.scale[0], quant.zero_point[0])
    walk.same(node, replace(op, value=float(stored)))


def _bilinear(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, UpsampleBilinear2d)
    walk.same(node, QUpsampleBilinear2d(op.size, op.step, op.align_corners))


def _elementwise(walk: Walk, node: Node) -> None:
    """What depends on one tensor only is a table; others have kernels."""
    (out,) = node.outputs
    function = _function(walk, node)
    if function is not None and walk.quant(out) is not None:
        _table(walk, node, function)
    elif function is not None:
        walk.functions[out] = function  # perhaps part of a larger table
        raise StaysFloat(f"no int8 scale was measured for {out}")
    elif isinstance(node.op, (Add, Mul)) and layers.affine(walk, node):
        return
    elif isinstance(node.op, (Add, Sub, Mul, Div)):
        _arithmetic(walk, node)
    elif isinstance(node.op, (Minimum, Maximum, Where)):
        _move(walk, node)
    elif len(values := [n for n in node.inputs if walk.graph[n].data is None]) == 1 and walk.quant(values[0]) is None:
        raise StaysFloat(f"no int8 scale was measured for {values[0]}")
    else:
        raise NoInt8(f"there is no int8 {node.op.name} of several tensors")


def _function(walk: Walk, node: Node) -> Function | None:
    """The node's result as a function of the one tensor that all its inputs depend on; None if there are several."""
    inputs = walk.graph.of(node.inputs)
    shape = walk.graph[node.outputs[0]].shape
    if any(t.count != 1 if t.data is not None else t.shape != shape for t in inputs):
        return None
    functions = {t.name: walk.function(t.name) for t in inputs if t.data is None}
    known = {name: f for name, f in functions.items() if f is not None}
    if len(known) < len(functions) or len({f.of for f in known.values()}) != 1:
        return None
    values = (known[t.name].values if t.data is None else t.data.reshape(()) for t in inputs)
    return Function(next(iter(known.values())).of, node.op.reference(*values)[0].reshape(-1))


def _table(walk: Walk, node: Node, function: Function) -> None:
    (out,) = node.outputs
    y = walk.scale(out)
    table = walk.table(out, function.values, y)
    walk.emit(node, Lookup(), walk.int8(function.of), table)
    rounded = dequantize(data_of([walk.new[table]], 0), y.scale[0], y.zero_point[0])
    walk.functions[out] = Function(function.of, rounded)


def _comparison(walk: Walk, node: Node) -> None:
    """What depends on one tensor only is a table of truth values; two tensors with one scale compare by their bytes."""
    (out,) = node.outputs
    function = _function(walk, node)
    quants = [walk.scale(n) for n in node.inputs if walk.graph[n].data is None]
    if function is not None:
        walk.functions[out] = function
        table = walk.constant(walk.graph[function.of], "table", function.values.astype(np.int8))
        truth = walk.add(Lookup(), function.of, walk.graph[out].shape, None, walk.int8(function.of), table)
        walk.nodes.append(Node(Cast("bool"), (truth,), (out,)))
    elif len(quants) == 2 and quants[0] == quants[1]:
        walk.nodes.append(Node(node.op, tuple(map(walk.int8, node.inputs)), (out,)))
    else:
        raise StaysFloat("there is no int8 comparison of tensors with different scales")
    walk.floats.add(out)


def _arithmetic(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Arithmetic)
    a, b, y = (walk.scale(n) for n in (*node.inputs, *node.outputs))
    if isinstance(op, Mul):
        made: QAdd | QMul | QDiv | None = product_of(a, b, y)
    elif isinstance(op, Div):
        made = quotient_of(a, b, y)
    else:
        made = sum_of(a, b, y, -1 if isinstance(op, Sub) else 1)
    if made is None:
        raise StaysFloat("its output's scale is too fine for those of its inputs")
    lo, hi = limits(op.lo, op.hi, y)
    walk.emit(node, replace(made, lo=lo, hi=hi), *map(walk.int8, node.inputs))


def _softmax(walk: Walk, node: Node) -> None:
    """softmax and log_softmax, along the last axis or moved there."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Softmax)
    shape, quant, y = walk.graph[x].shape, walk.scale(x), walk.scale(out)
    if not 0 < shape[op.axis] <= LONGEST:
        raise StaysFloat(f"it has {shape[op.axis]} numbers in a row, and an int8 softmax up to {LONGEST}")
    made, result = (QSoftmax(quant.scale[0]), RESULT) if type(op) is Softmax else (log_softmax_of(quant, y), y)
    if isinstance(made, QLogSoftmax):
        fits_32_bits(round(256 * made.scale * POINT) << made.shift)
    order = (*(i for i in range(len(shape)) if i != op.axis), op.axis)
    rows = walk.view(Permute(order), x, walk.int8(x))
    shares = walk.add(made, out, walk.new[rows].shape, result, rows)
    back = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, shares)
    if y != result:
        values = dequantize(EVERY, result.scale[0], result.zero_point[0])
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
    (MaxPool2d, pools.max_pool),
    (AvgPool2d, pools.avg_pool),
    (AdaptiveAvgPool2d, pools.adaptive_avg_pool),
    (AdaptiveMaxPool2d, pools.adaptive_max_pool),
    ((Mean, Sum, Amax), pools.reduction),
    (Pad, _pad),
    (UpsampleBilinear2d, _bilinear),
    (Comparison, _comparison),
    (Elementwise, _elementwise),
    (Softmax, _softmax),
    (Recurrent, recurrent),
    (Dequantize, _dequantize),
)
