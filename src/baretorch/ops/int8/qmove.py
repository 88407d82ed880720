"""int8 forms of operators that compute nothing: they move stored bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Node, Quant
from baretorch.ops.int8.arithmetic import dequantize, quantize_array
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.int8.rules import EVERY, StaysFloat, Walk
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.move import Cat, Slice

MOVES_16_BITS = (Permute, Reshape, Slice, Cat)


def move(walk: Walk, node: Node) -> None:
    """Add the operator itself, because its output consists of its inputs' own values; for int16 if all of them have 16
    bits."""
    (out,), quants = node.outputs, [walk.quant(n) for n in node.inputs]
    first = quants[0]
    wide = isinstance(node.op, MOVES_16_BITS) and all(q is not None and q.bits == 16 and q == first for q in quants)
    if wide and first is not None and walk.quant(out) in (None, first):
        walk.found[out] = first
        walk.wide[out] = walk.add_int16(node.op, out, *map(walk.int16, node.inputs))
    else:
        walk.same(node, node.op)


def pad(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, Pad)
    noted = walk.quant(node.outputs[0])
    quant = noted or walk.scale(node.inputs[0])
    if noted is None and op.value != 0:  # an own scale always has 0, but not every number
        raise StaysFloat(f"{op.value} was not measured for its scale")
    stored = quantize_array(np.array(op.value, np.float32), quant.scale[0], quant.zero_point[0])
    walk.same(node, replace(op, value=float(stored)))


def keep_stored(walk: Walk, node: Node) -> None:
    """Replace a quantize of a tensor that is int8 already: by the stored numbers, or by a table if its scale is another
    one."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Quantize)
    if walk.quant(x) is None and x not in walk.functions:
        raise StaysFloat("it is int8 already")
    walk.stored[out] = walk.rescale(x, Quant((op.scale,), (op.zero,)))


def rescale(walk: Walk, node: Node) -> None:
    """Replace a dequantize whose output gets another scale: by a table."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Dequantize)
    y, x = walk.scale(out), walk.stored.get(x, x)
    if y == Quant((op.scale,), (op.zero,)):
        walk.stored[out] = x
    else:
        walk.emit(node, Lookup(), x, walk.table(out, dequantize(EVERY, op.scale, op.zero), y))
