"""Rows of the table for integer networks: QuantLib's operators as Deeploy computes them, and ONNX's own on whole
numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes as aten
from baretorch.frontends.aten.pools import pool
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx import index, math, shapes
from baretorch.frontends.onnx.call import OnnxCall, key, need_room
from baretorch.frontends.onnx.convs import windows
from baretorch.frontends.onnx.integer import DOMAIN, MOST, IntegerLowering, Range, Requant, whole
from baretorch.frontends.onnx.integer_forms import ByteForm, Layer, Pair, Product, along
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.int8.integer import IntDivide, RequantShift
from baretorch.ops.int8.integer_rows import LONGEST, IntNorm, IntSoftmax, ItaSoftmax
from baretorch.ops.int8.integer_sums import IntConv2d
from baretorch.ops.int8.qpool import QAvgPool2d
from baretorch.ops.pool import MaxPool2d

LARGEST = 1 << 62  # of a numerator
LARGEST_FACTOR = 1 << 24  # of a hardswish: two of them and a byte have less than 63 bits


def integer_row(build: Callable[[IntegerLowering, OnnxCall], Result]) -> OnnxRow:
    """Make a row that only integer networks have."""

    def of_integers(g: OnnxLowering, call: OnnxCall) -> Result:
        assert isinstance(g, IntegerLowering)
        return build(g, call)

    return OnnxRow(of_integers)


# --- attributes and constants -------------------------------------------------------------------------------


def number(call: OnnxCall, name: str, least: int = -(1 << 31), most: int = MOST) -> int:
    """Return an attribute, which is a number or a tensor with one, as a whole number in a range."""
    value = call.attribute(name)
    if value is None:
        raise CompileError(f"{call.op}: the attribute {name} is missing")
    data = np.asarray(np.nan if isinstance(value, str) else value)
    if data.size != 1 or data.dtype.kind not in "iufb" or not np.isfinite(data).all() or (data != np.rint(data)).any():
        raise CompileError(f"{call.op}: the attribute {name} must be a whole number", have=str(value)[:60])
    if not least <= data.item() <= most:
        raise CompileError(f"{call.op}: the attribute {name} is {data.item():g}", need=f"{least:,} to {most:,}")
    return int(data.item())


def shift_of(call: OnnxCall, name: str) -> int:
    """Return the shift to the right that divides by an attribute."""
    divisor = number(call, name, 1, 1 << 30)
    if divisor & (divisor - 1):
        raise CompileError(f"{call.op}: {name} is {divisor:,}", need="a power of two")
    return divisor.bit_length() - 1


def levels(call: OnnxCall, signed: bool) -> Range:
    """Return the range of a result with this number of levels."""
    name = "n_levels_out" if "n_levels_out" in call.attributes else "n_levels"
    count = number(call, name, 2, 256)
    if signed and count % 2:
        raise CompileError(f"{call.op}: {name} is {count}", need="an even number for signed results")
    return Range(-count // 2, count // 2 - 1) if signed else Range(0, count - 1)


def constant(g: IntegerLowering, call: OnnxCall, i: int, what: str) -> Array:
    return whole(g.constant(call.need(i), f"{call.op}: {what}"), f"{call.op}: {what}")


def fitting(g: IntegerLowering, call: OnnxCall, i: int, what: str) -> Array:
    """Return a constant that broadcasts to the first input. One number for each channel, in any shape, is that of
    dimension 1."""
    data, shape = constant(g, call, i, what), g.shape(call.need(0))
    if data.size == 1:
        return data.reshape(())
    try:
        if np.broadcast_shapes(data.shape, shape) == shape:
            return data
    except ValueError:
        pass
    if len(shape) < 2 or data.size != shape[1] or max(data.shape) != shape[1]:
        raise CompileError(
            f"{call.op}: {what} does not fit its input",
            have=f"{list(data.shape)} for {list(shape)}",
            need="one number, one per channel, or a shape that broadcasts",
        )
    return data.reshape(-1, *(1,) * (len(shape) - 2))


# --- QuantLib's operators -----------------------------------------------------------------------------------


def requant_shift(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower (x * mul + add) / div, half up, within the levels: as a part of the operator before it where that is
    exact."""
    x = call.need(0)
    by = Requant(
        fitting(g, call, 1, "mul"),
        fitting(g, call, 2, "add"),
        shift_of(call, "div"),
        levels(call, bool(number(call, "signed", 0, 1))),
    )
    form = g.forms.get(x)
    held = g.range_of(x)
    if form is None and held.zero is not None:
        form = ByteForm.of(g.store_as(x, held.zero), held, lambda v: v)
    y = None if form is None else form.requantize(g, by)
    if y is not None:
        return y if y in g.ranges else g.hold(y, by.to)
    op = RequantShift(by.shift, by.zero, *by.limits)
    y = g.b.add(op, g.store_as(x, None), g.ints32(by.factor), g.ints32(by.offset))
    return g.hold(y, by.to)


def function(values: Callable[[OnnxCall], Callable[[Array], Array]]) -> OnnxRow:
    """Make a row for a function of one tensor of bytes, from the call's attributes."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        return ByteForm.of(x, held, values(call)).add(g, call.op)

    return integer_row(build)


def gelu(call: OnnxCall) -> Callable[[Array], Array]:
    """Return I-BERT's gelu: x * floor((one + sign(x) * (one - (min(|x|, -b) + b)^2)) / 2)."""
    b, one = number(call, "b", -(1 << 15), 0), number(call, "one")

    def value(x: Array) -> Array:
        near = np.sign(x) * (one - (np.minimum(np.abs(x), -b) + b) ** 2)
        return np.asarray(x * ((one + near) >> 1))

    return value


def hardswish(call: OnnxCall) -> Callable[[Array], Array]:
    three, six = number(call, "three", -LARGEST_FACTOR, LARGEST_FACTOR), number(call, "six", 0, LARGEST_FACTOR)
    sixth = number(call, "one_over_six", -LARGEST_FACTOR, LARGEST_FACTOR)
    return lambda x: np.asarray(x * (np.clip(x + three, 0, six) * sixth))


def true_div(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower x * floor(Delta * eta / (y * eta + eps)), as Deeploy computes the division by a constant."""
    x = call.need(0)
    eta = number(call, "eta", 1)
    divisor = number(call, "y") * eta + number(call, "eps")
    if divisor < 1:
        raise CompileError(f"{call.op}: the divisor y * eta + eps is {divisor:,}", need="a number above 0")
    factor = number(call, "Delta") * eta // divisor
    g.need_32_bits(call.op, factor, factor)
    held = g.range_of(x)
    if held.zero is not None:
        return ByteForm.of(g.store_as(x, held.zero), held, lambda v: v * factor).add(g, call.op)
    ends = sorted((held.lo * factor, held.hi * factor))
    made = g.need_32_bits(call.op, *ends)
    return g.hold(g.b.add(Mul(), x, g.ints32(np.array(factor))), made)


def integer_div(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower a * Delta * eta / (b * eta + eps), half away from 0. The range of b must exclude divisors below 1."""
    a, b = call.need(0), call.need(1)
    delta, eta, eps = number(call, "Delta"), number(call, "eta", 1), number(call, "eps")
    over, under = g.range_of(a), g.range_of(b)
    least, most = under.lo * eta + eps, under.hi * eta + eps
    if least < 1:
        raise CompileError(
            f"{call.op}: its divisor can be {least:,}", have=f"{under.lo:,} to {under.hi:,} times {eta:,}, plus {eps:,}"
        )
    largest = max(abs(over.lo), abs(over.hi)) * abs(delta) * eta + most
    if largest > LARGEST:
        raise CompileError(f"{call.op}: its numerator can leave 64 bits", have=f"{largest:,}")
    reach = largest // least + 1
    held = g.need_32_bits(call.op, -reach, reach)
    return g.hold(g.b.add(IntDivide(delta, eta, eps), g.store_as(a, None), g.store_as(b, None)), held)


def softmax(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower I-BERT's softmax: weights (coeffA * (p + coeffB)^2 + coeffC) >> z for a distance z * log2 - p from the
    largest number of a row, by a table of all distances."""
    x, _ = g.bytes_of(call.need(0), call.op)
    to, step = levels(call, signed=False), number(call, "log2", 1)
    a, b = (number(call, name, -(1 << 15), 1 << 15) for name in ("coeffA", "coeffB"))
    c = number(call, "coeffC")
    distance = np.arange(256, dtype=np.int64)
    halvings = np.minimum(distance // step, 31)
    weights = (a * (halvings * step - distance + b) ** 2 + c) >> halvings
    if weights[0] < 1 or weights.min() < 0 or weights.max() > MOST:
        raise CompileError(
            f"{call.op}: its coefficients do not make weights",
            have=f"{weights[0]:,} for the largest number of a row, {weights.min():,} to {weights.max():,} for others",
            need=f"1 to {MOST:,} for the largest, and no negative ones",
        )
    assert to.zero is not None
    return g.hold(g.b.add(IntSoftmax(to.hi, to.zero), x, g.ints32(weights)), to)


def ita_softmax(partial: bool) -> OnnxRow:
    """Make a row for the softmax of the accelerator ITA. Its partial form has half the levels."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        if number(call, "n_levels", 2) != 256:
            raise CompileError(f"{call.op}: n_levels is {number(call, 'n_levels')}", need="256, as the accelerator has")
        if held.zero:
            raise CompileError(f"{call.op}: its input is unsigned", need="numbers from -128 to 127")
        to = Range(0, 127 if partial else 255)
        assert to.zero is not None
        group = number(call, "group_width", 1, 1 << 15) if partial else 0
        return g.hold(g.b.add(ItaSoftmax(to.hi, to.zero, group), x), to)

    return integer_row(build)


def norm(centred: bool) -> OnnxRow:
    """Make a row for iLayerNorm, or iRMSNorm, which has no bias."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        shape = g.shape(x)
        if g.axis(x, number(call, "axis") if "axis" in call.attributes else -1) != len(shape) - 1:
            raise CompileError(f"{call.op}: only the last axis is supported", have=f"axis {call.attribute('axis')}")
        affine = [constant(g, call, i, what) for i, what in enumerate(("weight", "bias"), 1) if centred or i == 1]
        if shape[-1] > LONGEST or any(v.size not in (1, shape[-1]) for v in affine):
            raise CompileError(f"{call.op}: weight or bias do not fit its input", have=str(g[x]))
        spread = [np.broadcast_to(v.reshape(-1), shape[-1:]) for v in (*affine, np.array(0))[:2]]
        to = levels(call, signed=True)
        op = IntNorm(held.zero or 0, shift_of(call, "D"), centred, to.lo, to.hi)
        return g.hold(g.b.add(op, x, *map(g.ints32, spread)), to)

    return integer_row(build)


def no_norm(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower ((x * weight + bias) * mul) / D, rounded down, within the levels."""
    mul, shift, to = number(call, "mul"), shift_of(call, "D"), levels(call, signed=True)
    factor, offset = (fitting(g, call, i, what) * mul for i, what in ((1, "weight"), (2, "bias")))
    for v in (factor, offset):
        g.need_32_bits(f"{call.op}: mul", int(v.min(initial=0)), int(v.max(initial=0)))
    op = RequantShift(shift, 0, to.lo, to.hi, half=False)
    return g.hold(g.b.add(op, g.store_as(call.need(0), None), g.ints32(factor), g.ints32(offset)), to)


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
    return Layer(x, held, weight, bias, 1, w, int(call.attribute("group", 1))).add(g, call.op)


def linear(g: IntegerLowering, x: str, weight: Array, op: str) -> str:
    """Lower the product of rows with a weight [out, in]."""
    stored, held = g.bytes_of(x, op)
    if not g.shape(x) or g.shape(x)[-1] != weight.shape[1]:
        raise CompileError(f"{op}: the weight does not fit its input", have=f"{g[x]}, {list(weight.shape[::-1])}")
    bias = np.zeros(len(weight), np.int64)
    return Layer(stored, held, byte_weight(weight, op), bias, len(g.shape(x)) - 1).add(g, op)


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
    return Product(left, right, (over.zero, under.zero), max(-held.lo, held.hi)).add(g, held)


def gemm(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower alpha a b + beta c with whole factors."""
    alpha, beta = (number(call, name) if name in call.attributes else 1 for name in ("alpha", "beta"))
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
        c = both(g, Mul, c, factor, call.op) if data is None else g.ints32(scaled(g, c, beta, call.op))
    return both(g, Add, y, c, call.op)


def scaled(g: IntegerLowering, c: str, factor: int, op: str) -> Array:
    values = whole(g.constant(c, op), op) * factor
    g.need_32_bits(op, int(values.min(initial=0)), int(values.max(initial=0)))
    return values


# --- elementwise --------------------------------------------------------------------------------------------


def both(g: IntegerLowering, op: type[Add] | type[Sub] | type[Mul], a: str, b: str, name: str) -> str:
    """Apply an operator to two tensors as int32. A constant sum per channel is the bias of the layer before it."""
    for x, c in ((a, b), (b, a)) if op is Add else ():
        data, form = g[c].data, g.forms.get(x)
        if data is not None and isinstance(form, Layer) and np.broadcast_shapes(data.shape, g.shape(x)) == g.shape(x):
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
        form = Pair(op, g.store_as(a, over.zero), g.store_as(b, under.zero), (over.zero, under.zero))
    return g.hold(g.b.add(op(), g.store_as(a, None), g.store_as(b, None)), held, form)


def pairwise(op: type[Add] | type[Sub] | type[Mul]) -> OnnxRow:
    def build(g: IntegerLowering, call: OnnxCall) -> str:
        return both(g, op, call.need(0), call.need(1), call.op)

    return integer_row(build)


# --- moves and reductions -----------------------------------------------------------------------------------


def moved(row: OnnxRow) -> OnnxRow:
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
    **{
        key(op, DOMAIN): row
        for op, row in {
            "RequantShift": integer_row(requant_shift),
            "IntegerDiv": integer_row(integer_div),
            "TrueIntegerDiv": integer_row(true_div),
            "IntegerMean": reduction(mean=True),
            "iGELU": function(gelu),
            "iHardswish": function(hardswish),
            "iSoftmax": integer_row(softmax),
            "ITAMax": ita_softmax(partial=False),
            "ITAPartialMax": ita_softmax(partial=True),
            "iLayerNorm": norm(centred=True),
            "iRMSNorm": norm(centred=False),
            "iNoNorm": integer_row(no_norm),
        }.items()
    },
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
    **{op: moved({**shapes.ROWS, **index.ROWS, **math.ROWS}[op]) for op in MOVES},
}
