"""Rows of the table for integer networks: QuantLib's operators, as Deeploy computes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.onnx import integer_layers
from baretorch.frontends.onnx.call import OnnxCall, key
from baretorch.frontends.onnx.integer import DOMAIN, MOST, IntegerLowering, Range, Requant
from baretorch.frontends.onnx.integer_calls import constant, fitting, integer_row, levels, shift_of, whole_attribute
from baretorch.frontends.onnx.integer_forms import ByteForm, LimitedForm
from baretorch.frontends.onnx.integer_layers import reduction
from baretorch.frontends.onnx.lowering import OnnxRow
from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Mul
from baretorch.ops.int8.integer import IntDivide, RequantShift
from baretorch.ops.int8.integer_rows import MOST_IN_ROW, IntNorm, IntSoftmax, ItaSoftmax

LARGEST = 1 << 62  # of a numerator
LARGEST_FACTOR = 1 << 24  # of a hardswish: two of them and a byte have less than 63 bits


# --- QuantLib's operators -----------------------------------------------------------------------------------


def requant_shift(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower (x * mul + add) / div, half up, within the levels: as a part of the operator before it where that is
    exact."""
    x = call.need(0)
    by = Requant(
        fitting(g, call, 1, "mul"),
        fitting(g, call, 2, "add"),
        shift_of(call, "div"),
        levels(call, bool(whole_attribute(call, "signed", 0, 1))),
    )
    form = g.forms.get(x)
    if form is None and (held := g.range_of(x)).zero is not None:
        form = ByteForm.of(g.store_as(x, held.zero), held, lambda v: v)
    y = None if form is None else form.requantize(g, by)
    if y is not None:
        return y if y in g.ranges else g.hold(y, by.to)
    return g.hold(by.add(g, g.store_as(x, None)), by.to)


def function(values: Callable[[OnnxCall], Callable[[Array], Array]]) -> OnnxRow:
    """Make a row for a function of one tensor of bytes, from the call's attributes."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        return ByteForm.of(x, held, values(call)).add(g, call.op)

    return integer_row(build)


def gelu(call: OnnxCall) -> Callable[[Array], Array]:
    """Return I-BERT's gelu: x * floor((one + sign(x) * (one - (min(|x|, -b) + b)^2)) / 2)."""
    b, one = whole_attribute(call, "b", -(1 << 15), 0), whole_attribute(call, "one")

    def value(x: Array) -> Array:
        near = np.sign(x) * (one - (np.minimum(np.abs(x), -b) + b) ** 2)
        return np.asarray(x * ((one + near) >> 1))

    return value


def hardswish(call: OnnxCall) -> Callable[[Array], Array]:
    three, six = (
        whole_attribute(call, "three", -LARGEST_FACTOR, LARGEST_FACTOR),
        whole_attribute(call, "six", 0, LARGEST_FACTOR),
    )
    sixth = whole_attribute(call, "one_over_six", -LARGEST_FACTOR, LARGEST_FACTOR)
    return lambda x: np.asarray(x * (np.clip(x + three, 0, six) * sixth))


def true_div(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower x * floor(Delta * eta / (y * eta + eps)), as Deeploy computes the division by a constant."""
    x = call.need(0)
    eta = whole_attribute(call, "eta", 1)
    divisor = whole_attribute(call, "y") * eta + whole_attribute(call, "eps")
    if divisor < 1:
        raise CompileError(f"{call.op}: the divisor y * eta + eps is {divisor:,}", need="a number above 0")
    factor = whole_attribute(call, "Delta") * eta // divisor
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
    delta, eta, eps = whole_attribute(call, "Delta"), whole_attribute(call, "eta", 1), whole_attribute(call, "eps")
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
    y = g.b.add(IntDivide(delta, eta, eps), g.store_as(a, None), g.store_as(b, None))
    if reach > MOST:
        g.forms[y] = LimitedForm(y, reach)
        return y
    return g.hold(y, Range(-reach, reach))


def softmax(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower I-BERT's softmax: weights (coeffA * (p + coeffB)^2 + coeffC) >> z for a distance z * log2 - p from the
    largest number of a row, by a table of all distances."""
    x, _ = g.bytes_of(call.need(0), call.op)
    to, step = levels(call, signed=False), whole_attribute(call, "log2", 1)
    a, b = (whole_attribute(call, name, -(1 << 15), 1 << 15) for name in ("coeffA", "coeffB"))
    c = whole_attribute(call, "coeffC")
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
        if whole_attribute(call, "n_levels", 2) != 256:
            raise CompileError(
                f"{call.op}: n_levels is {whole_attribute(call, 'n_levels')}", need="256, as the accelerator has"
            )
        if held.zero:
            raise CompileError(f"{call.op}: its input is unsigned", need="numbers from -128 to 127")
        to = Range(0, 127 if partial else 255)
        assert to.zero is not None
        group = whole_attribute(call, "group_width", 1, 1 << 15) if partial else 0
        return g.hold(g.b.add(ItaSoftmax(to.hi, to.zero, group), x), to)

    return integer_row(build)


def norm(centred: bool) -> OnnxRow:
    """Make a row for iLayerNorm, or iRMSNorm, which has no bias."""

    def build(g: IntegerLowering, call: OnnxCall) -> str:
        x, held = g.bytes_of(call.need(0), call.op)
        shape = g.shape(x)
        if g.axis(x, whole_attribute(call, "axis") if "axis" in call.attributes else -1) != len(shape) - 1:
            raise CompileError(f"{call.op}: only the last axis is supported", have=f"axis {call.attribute('axis')}")
        affine = [constant(g, call, i, what) for i, what in enumerate(("weight", "bias"), 1) if centred or i == 1]
        if shape[-1] > MOST_IN_ROW or any(v.size not in (1, shape[-1]) for v in affine):
            raise CompileError(f"{call.op}: weight or bias do not fit its input", have=str(g[x]))
        spread = [np.broadcast_to(v.reshape(-1), shape[-1:]) for v in (*affine, np.array(0))[:2]]
        to = levels(call, signed=True)
        op = IntNorm(held.zero or 0, shift_of(call, "D"), centred, to.lo, to.hi)
        return g.hold(g.b.add(op, x, *map(g.ints32, spread)), to)

    return integer_row(build)


def no_norm(g: IntegerLowering, call: OnnxCall) -> str:
    """Lower ((x * weight + bias) * mul) / D, rounded down, within the levels."""
    mul, shift, to = whole_attribute(call, "mul"), shift_of(call, "D"), levels(call, signed=True)
    factor, offset = (fitting(g, call, i, what) * mul for i, what in ((1, "weight"), (2, "bias")))
    for v in (factor, offset):
        g.need_32_bits(f"{call.op}: mul", int(v.min(initial=0)), int(v.max(initial=0)))
    op = RequantShift(shift, 0, to.lo, to.hi, half=False)
    return g.hold(g.b.add(op, g.store_as(call.need(0), None), g.ints32(factor), g.ints32(offset)), to)


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
    **integer_layers.ROWS,
}
