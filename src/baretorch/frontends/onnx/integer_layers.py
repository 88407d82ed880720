"""Rows of the table for integer networks: ONNX's own operators on whole numbers."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes as aten
from baretorch.frontends.aten.pools import pool
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx import index, math, shapes
from baretorch.frontends.onnx.call import OnnxCall, need_room
from baretorch.frontends.onnx.convs import windows
from baretorch.frontends.onnx.integer import IntegerLowering, Range, whole
from baretorch.frontends.onnx.integer_calls import constant, integer_row, whole_attribute
from baretorch.frontends.onnx.integer_forms import LayerForm, PairForm, ProductForm, along
from baretorch.frontends.onnx.lowering import OnnxRow
from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.int8.integer import IntDivide, RequantShift
from baretorch.ops.int8.integer_sums import IntConv2d
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.pool import MaxPool2d

# --- layers -------------------------------------------------------------------------------------------------


def byte_weight(data: Array, op: str) -> Array:
    if data.min(initial=0) < -128 or data.max(initial=0) > 127:
        raise CompileError(f"{op}: the weight exceeds 8 bits", have=f"{data.min():,} to {data.max():,}")
    return data


def conv(g: IntegerLowering, call: OnnxCall) -> str:
    x, held = g.bytes_of(call.need(0), call.op)
    weight = byte_weight(constant(g, call, 1, "the weight"), call.op)
    bias = np.zeros(len(weight), np.int64) if call.input(2) is None else constant(g, call, 2, "the bias")
    dims = weight.ndim - 2
    if dims not in (1, 2) or len(g.shape(x)) != dims + 2:
        raise CompileError(f"{call.op} over {dims} dimensions is not supported", have=str(g[x]), need="1 or 2")
    if bias.shape != weight.shape[:1]:
        raise CompileError(f"{call.op}: the bias does not fit", have=f"{list(bias.shape)} for {len(weight)} channels")
    w = windows(call, g.shape(x)[2:], weight.shape[2:])
    return LayerForm(x, held, weight, bias, 1, w, int(call.attribute("group", 1))).add(g, call.op)


def linear(g: IntegerLowering, x: str, weight: Array, op: str) -> str:
    """Lower the product of rows with a weight [out, in]."""
    stored, held = g.bytes_of(x, op)
    if not g.shape(x) or g.shape(x)[-1] != weight.shape[1]:
        raise CompileError(f"{op}: the weight does not fit its input", have=f"{g[x]}, {list(weight.shape[::-1])}")
    bias = np.zeros(len(weight), np.int64)
    return LayerForm(stored, held, byte_weight(weight, op), bias, len(g.shape(x)) - 1).add(g, op)


def matmul(g: IntegerLowering, call: OnnxCall) -> str:
    return product(g, call.need(0), call.need(1), call.op)


def product(g: IntegerLowering, a: str, b: str, op: str) -> str:
    data = g[b].data
    if data is not None and data.ndim == 2:
        return linear(g, a, whole(data, f"{op}: the weight").T, op)
    if min(len(g.shape(a)), len(g.shape(b))) < 2:
        raise CompileError(f"{op} of a vector is not supported", have=f"{g[a]}, {g[b]}", need="matrices")
    (left, over), (right, under) = g.bytes_of(a, op), g.bytes_of(b, op)
    ends = [u * v for u in (over.lo, over.hi) for v in (under.lo, under.hi)]
    terms = g.shape(a)[-1]
    held = g.need_32_bits(op, terms * min(*ends, 0), terms * max(*ends, 0))
    assert over.zero is not None and under.zero is not None
    return ProductForm(left, right, (over.zero, under.zero), max(-held.lo, held.hi)).add(g, held)


def gemm(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower alpha a b + beta c with whole factors."""
    alpha, beta = (whole_attribute(call, name) if name in call.attributes else 1 for name in ("alpha", "beta"))
    a, b = call.need(0), call.need(1)
    if call.attribute("transA", 0):
        a = g.hold(g.permute(a, (1, 0)), g.range_of(a))
    if call.attribute("transB", 0):
        data = g[b].data
        b = g.b.const("weight", data.T) if data is not None else g.hold(g.permute(b, (1, 0)), g.range_of(b))
    y = product(g, a, b, call.op)
    if alpha != 1:
        y = both(g, Mul, y, g.ints32(np.array(alpha)), call.op)
    c = call.input(2)
    if c is None or beta == 0:
        return y
    if beta != 1:
        data = g[c].data
        factor = g.ints32(np.array(beta))
        c = both(g, Mul, c, factor, call.op) if data is None else g.ints32(scale_constant(g, c, beta, call.op))
    return both(g, Add, y, c, call.op)


def scale_constant(g: IntegerLowering, c: str, factor: int, op: str) -> Array:
    values = whole(g.constant(c, op), op) * factor
    g.need_32_bits(op, int(values.min(initial=0)), int(values.max(initial=0)))
    return values


# --- elementwise --------------------------------------------------------------------------------------------


def both(g: IntegerLowering, op: type[Add] | type[Sub] | type[Mul], a: str, b: str, name: str) -> str:
    """Apply an operator to two tensors as int32. A constant sum per channel is the bias of the layer before it."""
    for x, c in ((a, b), (b, a)) if op is Add else ():
        data, form = g[c].data, g.forms.get(x)
        if (
            data is not None
            and isinstance(form, LayerForm)
            and np.broadcast_shapes(data.shape, g.shape(x)) == g.shape(x)
        ):
            more = along(whole(data, f"{name}: a constant"), len(g.shape(x)), form.axis, len(form.weight))
            if more is not None:
                return form.with_bias(more).add(g, name)
    over, under = g.range_of(a), g.range_of(b)
    if op is Mul:
        ends = [u * v for u in (over.lo, over.hi) for v in (under.lo, under.hi)]
    elif op is Sub:
        ends = [over.lo - under.hi, over.hi - under.lo]
    else:
        ends = [over.lo + under.lo, over.hi + under.hi]
    held = g.need_32_bits(name, min(ends), max(ends))
    form = None
    if over.zero is not None and under.zero is not None:
        form = PairForm(op, g.store_as(a, over.zero), g.store_as(b, under.zero), (over.zero, under.zero))
    return g.hold(g.b.add(op(), g.store_as(a, None), g.store_as(b, None)), held, form)


def pairwise(op: type[Add] | type[Sub] | type[Mul]) -> OnnxRow:
    def build(g: IntegerLowering, call: OnnxCall) -> str:
        return both(g, op, call.need(0), call.need(1), call.op)

    return integer_row(build)


# --- moves and reductions -----------------------------------------------------------------------------------


def _move_row(row: OnnxRow) -> OnnxRow:
    """Make a row for an operator that only moves the numbers of its first input, from that for floats."""

    def build(g: IntegerLowering, call: OnnxCall) -> Result:
        x = call.need(0)
        held = g.range_of(x)
        first = x if g[x].data is None else g.store_as(x, held.zero)
        return g.result(row.build(g, replace(call, inputs=(first, *call.inputs[1:]))), held)

    return integer_row(build)


def concat(g: IntegerLowering, call: OnnxCall) -> str:
    names = [x for x in call.inputs if x and g[x].count] or [call.need(0)]
    held = [g.range_of(x) for x in names]
    every = Range(min(r.lo for r in held), max(r.hi for r in held))
    parts = [g.store_as(x, every.zero) for x in names]
    return g.hold(aten.cat(g, parts, g.axis(names[0], int(call.attribute("axis", 0)))), every)


def pad(g: IntegerLowering, call: OnnxCall) -> Result:
    """Lower a Pad by a whole number."""
    x, given = call.need(0), call.input(2)
    if call.attribute("mode", "constant") != "constant":
        return g.result(shapes.ROWS["Pad"].build(g, call), g.range_of(x))
    value = (
        constant(g, call, 2, "the value").reshape(-1) if given else whole(np.array([call.attribute("value", 0)]), "Pad")
    )
    held = g.range_of(x).including(int(value[0]))
    inside = g.hold(g.store_as(x, held.zero), held)
    number = g.b.const("value", np.array(float(value[0] + (held.zero or 0)), np.float32))
    inputs = (inside, call.input(1), number, *call.inputs[3:])
    if "pads" in call.attributes:  # before opset 11
        inputs = (inside, None, number)
    return g.result(shapes.ROWS["Pad"].build(g, replace(call, inputs=inputs)), held)


def max_pool(g: IntegerLowering, call: OnnxCall) -> str:
    if call.outputs > 1:
        raise CompileError(f"{call.op}: only its first output can be used", need="no Indices")
    x, held = g.bytes_of(call.need(0), call.op)
    w = windows(call, g.shape(x)[2:], tuple(call.attribute("kernel_shape")))
    if w.dims > 2 or any(d > 1 for d in w.dilations):
        raise CompileError(f"{call.op} with dilation or over {w.dims} dimensions is not supported", need="1 or 2")
    ceil = bool(call.attribute("ceil_mode", 0))
    return g.hold(pool(g, x, w, lambda w: MaxPool2d(w.size, w.step, w.around, w.reach, ceil)), held)


def reduction(mean: bool) -> OnnxRow:
    """Make a row for a sum, or for a mean: half up over a power of two of numbers, else half away from 0."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        shape, rank = g.shape(x), len(g.shape(x))
        named = g.ints(call.input(1), f"{call.op}: axes") if call.input(1) else call.attribute("axes", range(rank))
        axes = sorted({g.axis(x, int(a)) for a in np.atleast_1d(named)})
        if not axes or not 0 <= axes[0] <= axes[-1] < rank:
            raise CompileError(f"{call.op}: the axes {axes} are not those of its input", have=str(g[x]))
        keep = bool(call.attribute("keepdims", 1))
        to = [1 if a in axes else n for a, n in enumerate(shape) if keep or a not in axes]
        if axes != list(range(axes[0], axes[-1] + 1)):
            x = g.permute(x, (*(a for a in range(rank) if a not in axes), *axes))
            axes = list(range(rank - len(axes), rank))
        sizes = g.shape(x)
        count = prod(sizes[a] for a in axes)
        image = g.reshape(x, (prod(sizes[: axes[0]]), count, 1, prod(sizes[axes[-1] + 1 :])))
        y, made = _mean(g, image, held) if mean else _sums(g, image, held)
        return g.hold(g.reshape(y, to), made)

    return integer_row(build)


def _mean(g: IntegerLowering, image: str, held: Range) -> tuple[str, Range]:
    """Return the mean over the second dimension."""
    count, zero = g.shape(image)[1], held.zero
    assert zero is not None
    if count > 0 and not count & (count - 1):
        left = max(0, 3 - count.bit_length())
        return g.b.add(QAvgPool2d((count, 1), (count, 1), zero, (1 << 32) // count >> left, left, zero), image), held
    sums, _ = _sums(g, image, held)
    wide = g.b.add(IntDivide(1, 1, 0), sums, g.ints32(np.array(count)))
    op = RequantShift(0, zero, held.lo + zero, held.hi + zero)
    return g.b.add(op, wide, g.ints32(np.array(1)), g.ints32(np.array(0))), held


def _sums(g: IntegerLowering, image: str, held: Range) -> tuple[str, Range]:
    """Return the sums over the second dimension as int32, by a convolution with ones."""
    _, count, _, channels = g.shape(image)
    assert held.zero is not None
    made = g.need_32_bits("a sum", count * min(held.lo, 0), count * max(held.hi, 0))
    need_room("a sum", channels, count)
    ones = g.b.const("ones", np.ones((channels, count, 1, 1), np.int8))
    bias = g.ints32(np.full(channels, -held.zero * count))
    return g.b.add(IntConv2d(held.zero, groups=channels), image, ones, bias), made


MOVES = (
    "Identity",
    "Reshape",
    "Flatten",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Split",
    "Slice",
    "Gather",
    "Expand",
    "Tile",
)


ROWS: dict[str, OnnxRow] = {
    "Conv": integer_row(conv),
    "MatMul": integer_row(matmul),
    "Gemm": integer_row(gemm),
    "Add": pairwise(Add),
    "Sub": pairwise(Sub),
    "Mul": pairwise(Mul),
    "Concat": integer_row(concat),
    "Pad": integer_row(pad),
    "MaxPool": integer_row(max_pool),
    "ReduceMean": reduction(mean=True),
    "ReduceSum": reduction(mean=False),
    **{op: _move_row({**shapes.ROWS, **index.ROWS, **math.ROWS}[op]) for op in MOVES},
}
