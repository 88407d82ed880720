"""Calls of 16 bits: activations are int16 with a scale. Operands are their stored numbers, and so are results.

Each function computes what LiteRT's reference kernels do, or returns None where the call is computed in float.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from baretorch.frontends.lowering import Result
from baretorch.frontends.tflite.call import NO_LIMITS, Limits, TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow
from baretorch.frontends.tflite.schema import TfTensor
from baretorch.ir.graph import Op
from baretorch.ops.elementwise import Add, Arithmetic, Mul, Sub
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST, multipliers
from baretorch.ops.int8.litert import LiteRtAvgPool16, add16_of, curve16_of, leaky_relu16_of, mul16_of
from baretorch.ops.int8.litert_softmax import LiteRtSoftmax16
from baretorch.ops.int8.qpool import QAvgPool16, QMaxPool16

UNIT = 2.0**-15  # the scale of results between -1 and 1
LARGEST_SUM = 1 << 31


def move_row(row: TfliteRow) -> TfliteRow:
    """Return the row of an operator that only moves numbers, with 16 bits and zero points too."""

    def sixteen(g: TfliteLowering, call: TfliteCall) -> Result | None:
        return row.build(g, call) if _same_scales(call) else None

    return replace(row, sixteen=sixteen, zeros=True)


def concatenation(g: TfliteLowering, call: TfliteCall, op: Op) -> str | None:
    return g.apply(op, call) if _same_scales(call) and call.limits(1) == NO_LIMITS else None


def arithmetic(g: TfliteLowering, call: TfliteCall, op: type[Arithmetic]) -> str | None:
    """Add a sum, difference or product."""
    if op not in (Add, Sub, Mul) or len(call.inputs) != 2:
        return None
    a, b, y = (t.scale for t in (*call.operands, call.y) if t is not None)
    limits = _stored_limits(call.limits(0), y)
    made = mul16_of(a, b, y, limits) if op is Mul else add16_of(a, b, y, -1 if op is Sub else 1, limits)
    return g.b.add(made, *call.given())


def leaky_relu(g: TfliteLowering, call: TfliteCall, slope: float) -> str:
    return g.b.add(leaky_relu16_of(_first(call).scale, call.y.scale, slope), call.x())


def curve(g: TfliteLowering, call: TfliteCall, tanh: bool) -> str | None:
    return g.b.add(curve16_of(_first(call).scale, tanh), call.x()) if call.y.scale == UNIT else None


def softmax(g: TfliteLowering, call: TfliteCall) -> str | None:
    op, length = LiteRtSoftmax16(_first(call).scale * call.real(0)), call.y.shape[-1] if call.y.shape else 0
    fits = abs(call.y.scale / UNIT - 1) <= 0.001 and 0 < length <= op.longest and call.real(0) > 0
    return g.b.add(op, call.x()) if fits else None


def max_pool(g: TfliteLowering, call: TfliteCall, kernel: Pair, stride: Pair, padding: Padding) -> str | None:
    if not _same_scales(call) or call.limits(5) != NO_LIMITS:
        return None
    return g.b.add(QMaxPool16(kernel, stride, padding), call.x())


def average_pool(g: TfliteLowering, call: TfliteCall, kernel: Pair, stride: Pair, padding: Padding) -> str | None:
    """Add an average: with padding, which does not count, by a division for each number."""
    if not _same_scales(call) or call.limits(5) != NO_LIMITS or prod(kernel) * -LOWEST >= LARGEST_SUM:
        return None
    if any(padding) or prod(kernel) == 1:
        return g.b.add(LiteRtAvgPool16(kernel, stride, padding), call.x())
    (multiplier,), shift = multipliers([1 / prod(kernel)])
    return g.b.add(QAvgPool16(kernel, stride, padding, int(multiplier), shift), call.x())


def _first(call: TfliteCall) -> TfTensor:
    t = call.operands[0]
    assert t is not None
    return t


def _same_scales(call: TfliteCall) -> bool:
    """Report whether all tensors of 16 bits have one scale."""
    tensors = (t for t in (*call.operands, *call.outputs) if t is not None and t.type == "int16" and t.quant)
    return len({t.scale for t in tensors}) == 1


def _stored_limits(limits: Limits, scale: float) -> tuple[int, int]:
    """Return real limits as stored numbers."""
    lo, hi = (float(v) for v in np.clip(np.array(limits) / scale, LOWEST, HIGHEST))
    return round(lo), round(hi)
