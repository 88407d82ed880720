"""Calls of operators in integer networks, as their rows receive them: attributes and constants as whole numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import OnnxCall
from baretorch.frontends.onnx.integer import MOST, IntegerLowering, Range, whole
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import Array


def integer_row(build: Callable[[IntegerLowering, OnnxCall], Result]) -> OnnxRow:
    """Make a row that only integer networks have."""

    def of_integers(g: OnnxLowering, call: OnnxCall) -> Result:
        assert isinstance(g, IntegerLowering)
        return build(g, call)

    return OnnxRow(of_integers)


# --- attributes and constants -------------------------------------------------------------------------------


def whole_attribute(call: OnnxCall, name: str, least: int = -(1 << 31), most: int = MOST) -> int:
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
    divisor = whole_attribute(call, name, 1, 1 << 30)
    if divisor & (divisor - 1):
        raise CompileError(f"{call.op}: {name} is {divisor:,}", need="a power of two")
    return divisor.bit_length() - 1


def levels(call: OnnxCall, signed: bool) -> Range:
    """Return the range of a result with this number of levels."""
    name = "n_levels_out" if "n_levels_out" in call.attributes else "n_levels"
    count = whole_attribute(call, name, 2, 256)
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
