"""int8 forms of elementwise operators: a table if the result depends on one tensor, else kernels for some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from baretorch.ir.graph import Array, Graph, Node, Op
from baretorch.ops.elementwise import Add, Arithmetic, Div, Maximum, Minimum, Mul, Sub
from baretorch.ops.functions import Sigmoid, Tanh
from baretorch.ops.helpers.kernel import data_of
from baretorch.ops.int8.arithmetic import dequantize
from baretorch.ops.int8.layer import store
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import (
    QAdd,
    QDiv,
    QMul,
    product_of,
    quotient_of,
    squared_difference_of,
    sum16_of,
    sum_of,
)
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qmove import move
from baretorch.ops.int8.rules import ByteFunction, Int8Rule, NoInt8, StaysFloat, Walk, limits
from baretorch.ops.int8.scaled import Scaled
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.logic import Cast, Comparison, LogicalAnd, LogicalNot, LogicalOr, Where

TOO_FINE = "its output's scale is too fine for those of its inputs"


def elementwise(walk: Walk, node: Node) -> None:
    """Add the int8 form of an elementwise operator: a table if it depends on one tensor only, else a kernel."""
    (out,) = node.outputs
    function = _function(walk, node)
    several = OF_SEVERAL.get(type(node.op))
    if function is not None and walk.quant(out) is not None:
        _table(walk, node, function)
    elif function is not None:
        walk.functions[out] = function  # perhaps part of a larger table
        raise StaysFloat(f"no int8 scale was measured for {out}")
    elif several is not None:
        several(walk, node)
    elif len(values := [n for n in node.inputs if walk.graph[n].data is None]) == 1 and walk.quant(values[0]) is None:
        raise StaysFloat(f"no int8 scale was measured for {values[0]}")
    else:
        raise NoInt8(f"{node.op.name} of several tensors has no int8 form")


def _function(walk: Walk, node: Node) -> ByteFunction | None:
    """Return the node's result as a function of the one tensor that all its inputs depend on, or None if there are
    several."""
    inputs = walk.graph.of(node.inputs)
    if not element_by_element(walk.graph, node):
        return None
    for find in (walk.function, walk.deepest):
        functions = {t.name: find(t.name) for t in inputs if t.data is None}
        known = {name: f for name, f in functions.items() if f is not None}
        if len(known) == len(functions) and len({f.of for f in known.values()}) == 1:
            values = (known[t.name].values if t.data is None else t.data.reshape(()) for t in inputs)
            return ByteFunction(next(iter(known.values())).of, node.op.reference(*values)[0].reshape(-1))
    return None


def element_by_element(graph: Graph, node: Node) -> bool:
    """Return whether nothing is broadcast except numbers, so that each element of the result depends on one of each
    input."""
    shape = graph[node.outputs[0]].shape
    inputs = graph.of(node.inputs)
    return all(t.count == 1 if t.data is not None else t.shape == shape for t in inputs)


def _table(walk: Walk, node: Node, function: ByteFunction) -> None:
    (out,) = node.outputs
    y = walk.scale(out)
    table = walk.table(out, function.values, y)
    walk.emit(node, Lookup(), walk.int8(function.of), table)
    rounded = dequantize(data_of([walk.new[table]], 0), y.scale[0], y.zero_point[0])
    walk.functions[out] = ByteFunction(function.of, rounded)


def comparison(walk: Walk, node: Node) -> None:
    """Add the int8 form of a comparison: a table of truth values if it depends on one tensor only. Two tensors with one
    scale are compared by their bytes."""
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
        raise StaysFloat("a comparison of tensors with different scales has no int8 form")
    walk.floats.add(out)


def _affine_or_arithmetic(walk: Walk, node: Node) -> None:
    if not _affine(walk, node) and not _squared_difference(walk, node):
        _arithmetic(walk, node)


def _squared_difference(walk: Walk, node: Node) -> bool:
    """Add the int8 form of the square of a difference without a scale of its own, as variances contain; return False if
    the node is something else."""
    op, (x, other) = node.op, node.inputs
    before = walk.makers.get(x)
    if not isinstance(op, Mul) or x != other or walk.quant(x) is not None or before is None or before.op != Sub():
        return False
    a, b, y = (walk.scale(n) for n in (*before.inputs, *node.outputs))
    made = squared_difference_of(a, b, y)
    if made is None:
        raise StaysFloat(TOO_FINE)
    lo, hi = limits(op.lo, op.hi, y)
    walk.emit(node, replace(made, lo=lo, hi=hi), *map(walk.int8, before.inputs))
    return True


def _arithmetic(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Arithmetic)
    (out,), sign = node.outputs, -1 if isinstance(op, Sub) else 1
    a, b, y = (walk.scale(n) for n in (*node.inputs, out))
    if y.bits == 16 and isinstance(op, (Add, Sub)):
        s_a, s_b, s_y = (walk.finer_scale(n) for n in (*node.inputs, out))
        wide = sum16_of(s_a, s_b, s_y, sign, op.lo, op.hi)
        if wide is None:
            raise StaysFloat(TOO_FINE)
        walk.wide[out] = walk.add_int16(wide, out, *map(walk.int16, node.inputs))
        return
    if isinstance(op, Mul):
        made: QAdd | QMul | QDiv | None = product_of(a, b, y)
    elif isinstance(op, Div):
        made = quotient_of(a, b, y)
    else:
        made = sum_of(a, b, y, sign)
    if made is None:
        raise StaysFloat(TOO_FINE)
    lo, hi = limits(op.lo, op.hi, y)
    walk.emit(node, replace(made, lo=lo, hi=hi), *map(walk.int8, node.inputs))


@dataclass(frozen=True)
class _Channels:
    """A sum or product with a constant that has one number for each channel: the other input, the axis of channels, and
    the numbers."""

    x: str
    axis: int
    numbers: Array


def _affine(walk: Walk, node: Node) -> bool:
    """Lower a factor and a summand per channel, as of a BatchNorm without a layer before it, to a depthwise
    convolution of 1x1. Return False if the node is something else."""
    op, (out,) = node.op, node.outputs
    assert isinstance(op, (Add, Mul))
    last = _by_channel(walk.graph, node)
    first = None
    if last is not None and isinstance(op, Add) and walk.quant(last.x) is None:
        before = walk.makers.get(last.x)
        first = _by_channel(walk.graph, before) if before is not None and before.op == Mul() else None
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
    zero, scales = quant.zero_point[0], np.abs(factor) / 127
    stored = store(factor[:, None], summand, scales, quant.scale[0], y.scale[0], x_zero=zero)
    constants = stored.constants(walk, walk.graph[out], (-1, 1, 1, 1))
    lo, hi = limits(op.lo, op.hi, y)
    shape = walk.graph[out].shape
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    pixels = (1, prod(shape) // shape[axis], 1, shape[axis])
    image = walk.view(Reshape(pixels), x, walk.view(Permute(order), x, walk.int8(x)))
    made = QConv2d(zero, y.zero_point[0], stored.shift, lo, hi, groups=shape[axis])
    whole = walk.view(Reshape(tuple(shape[i] for i in order)), out, walk.add(made, out, pixels, y, image, *constants))
    walk.stored[out] = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, whole)
    return True


def scales_and_shifts(graph: Graph, first: Node, last: Node) -> bool:
    """Return whether two nodes are a factor and a summand for each channel, which `_affine` joins."""
    if first.op != Mul() or not isinstance(last.op, Add):
        return False
    factor, summand = _by_channel(graph, first), _by_channel(graph, last)
    return factor is not None and summand is not None and factor.axis == summand.axis


def _by_channel(graph: Graph, node: Node) -> _Channels | None:
    (out,) = node.outputs
    varying = [n for n in node.inputs if graph[n].data is None]
    constants = [t for t in graph.of(node.inputs) if t.data is not None and t.quant is None]
    if len(varying) != 1 or len(constants) != 1 or graph[varying[0]].shape != graph[out].shape:
        return None
    (t,), rank = constants, len(graph[out].shape)
    axis = next((rank - len(t.shape) + i for i, n in enumerate(t.shape) if n == t.count), None)
    if axis is None or graph[out].shape[axis] != t.count:
        return None
    return _Channels(varying[0], axis, data_of(constants, 0).astype(np.float64).reshape(-1))


def rule(op: type[Op]) -> Int8Rule:
    """Return how an elementwise operator becomes an int8 operator."""
    return comparison if issubclass(op, Comparison) else elementwise


def scaling_of(op: type[Op]) -> Scaled | None:
    """Return which scales an operator needs; those with truth values use the scales that exist."""
    return SCALED.get(op, None if issubclass(op, LOGIC) else Scaled.OWN)


LOGIC = (Comparison, LogicalAnd, LogicalOr, LogicalNot, Cast)
SCALED: dict[type[Op], Scaled] = {
    Add: Scaled.SUM,
    Sub: Scaled.SUM,
    Minimum: Scaled.ALIKE,
    Maximum: Scaled.ALIKE,
    Where: Scaled.ALIKE,
    Sigmoid: Scaled.UNIT,
    Tanh: Scaled.SIGNED,
}

# What is done with several tensors.
OF_SEVERAL: dict[type[Op], Int8Rule] = {
    Add: _affine_or_arithmetic,
    Mul: _affine_or_arithmetic,
    Sub: _arithmetic,
    Div: _arithmetic,
    Minimum: move,
    Maximum: move,
    Where: move,
}
