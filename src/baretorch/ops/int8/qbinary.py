"""qadd, qmul, qdiv and qsquared_difference: sums, products, quotients and squared differences of two int8 tensors, with
NumPy's broadcasting; and qadd16, the sum of two int16 tensors. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Quant, Signature, Tensor
from baretorch.ops.elementwise import LOOPS, broadcast, loop_fields, loops_of
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Params, fields_of
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST, multipliers, requantize
from baretorch.targets.features import DSP, MVE, XCV, Needs

LARGEST_FACTOR = (1 << 15) - 1  # a halfword: one SMLAD multiplies both inputs
SHIFTS = range(22, 8, -1)  # above them a sum could leave 32 bits, below them it could be a step off

LARGEST_FACTOR_16 = (1 << 14) - 1  # two products with it and a rounding bit are below 2^31
SHIFTS_16 = range(28, 8, -1)

LARGEST_NUMERATOR = 1 << 22  # times 255
QUOTIENT_SHIFTS = range(22, 3, -1)


@dataclass(frozen=True)
class QBinary(Pointwise):
    """A function of two int8 tensors, element by element. Its fields are those of its C struct, after the loops."""

    dtype: ClassVar[DType] = DType.INT8

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        label = self.dtype.label
        right = all(t.dtype is self.dtype for t in inputs)
        need(right, self, f"the inputs are not {label}", inputs, f"{label} and {label}")
        return (Signature(broadcast(self, inputs), self.dtype),)


@dataclass(frozen=True)
class QAdd(QBinary, name="qadd"):
    """a, b int8 -> clamp((a * a_factor + b * b_factor + offset) >> shift, lo, hi)."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int
    lo: int = -128
    hi: int = 127

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        total = a * self.a_factor + b * self.b_factor + self.offset
        return (np.clip(total >> self.shift, self.lo, self.hi).astype(np.int8),)


@dataclass(frozen=True)
class QMul(QBinary, name="qmul"):
    """a, b int8 -> (a - a_zero) * (b - b_zero), requantized."""

    a_zero: int
    b_zero: int
    multiplier: int
    shift: int
    zero: int
    lo: int = -128
    hi: int = 127

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        acc = (a - self.a_zero) * (b - self.b_zero)
        return (requantize(acc, np.array(self.multiplier), self.shift, self.zero, self.lo, self.hi),)


@dataclass(frozen=True)
class QDiv(QBinary, name="qdiv"):
    """a, b int8 -> (a - a_zero) * factor / (b - b_zero), rounded toward 0, then by 2^shift half up, limited. Division
    by 0 gives a limit, and 0 / 0 is 0."""

    a_zero: int
    b_zero: int
    factor: int
    shift: int
    zero: int
    lo: int = -128
    hi: int = 127

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        n, d = (a - self.a_zero) * self.factor, b - self.b_zero
        quotient = np.sign(n) * np.sign(d) * (np.abs(n) // np.maximum(np.abs(d), 1))
        y = self.zero + ((quotient + (1 << (self.shift - 1))) >> self.shift)
        limit = np.where(n > 0, self.hi, np.where(n < 0, self.lo, self.zero))
        return (np.clip(np.where(d == 0, limit, y), self.lo, self.hi).astype(np.int8),)


@dataclass(frozen=True)
class QSquaredDifference(QBinary, name="qsquared_difference"):
    """a, b int8 -> the square of ((a - a_zero) * a_factor - (b - b_zero) * b_factor) / 2^7, rounded, requantized."""

    a_zero: int
    b_zero: int
    a_factor: int
    b_factor: int
    multiplier: int
    zero: int
    lo: int = -128
    hi: int = 127

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        apart = (a - self.a_zero) * self.a_factor - (b - self.b_zero) * self.b_factor
        steps = (apart + 64) >> 7
        return (requantize(steps * steps, np.array(self.multiplier), 0, self.zero, self.lo, self.hi),)


@dataclass(frozen=True)
class QAdd16(QBinary, name="qadd16", dtype=DType.INT16):
    """a, b int16 -> clamp((a * a_factor + b * b_factor + 2^(shift-1)) >> shift, lo, hi)."""

    a_factor: int
    b_factor: int
    shift: int
    lo: int = LOWEST
    hi: int = HIGHEST

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        total = a * self.a_factor + b * self.b_factor + (1 << (self.shift - 1))
        return (np.clip(total >> self.shift, self.lo, self.hi).astype(np.int16),)


def sum_of(a: Quant, b: Quant, y: Quant, sign: int = 1) -> QAdd | None:
    """Return a + sign * b for tensors with these scales, with the largest shift whose factors fit into halfwords, or
    None if an input's scale is 64 times the output's or more."""
    ratios = (a.scale[0] / y.scale[0], sign * b.scale[0] / y.scale[0])
    for shift in SHIFTS:
        a_factor, b_factor = (round(r * (1 << shift)) for r in ratios)
        if max(abs(a_factor), abs(b_factor)) <= LARGEST_FACTOR:
            zeros = a.zero_point[0] * a_factor + b.zero_point[0] * b_factor
            offset = (y.zero_point[0] << shift) + (1 << (shift - 1)) - zeros
            return QAdd(a_factor, b_factor, offset, shift)
    return None


def sum16_of(a: float, b: float, y: float, sign: int, lo: float, hi: float) -> QAdd16 | None:
    """Return a + sign * b for int16 tensors with these scales, with the largest shift that keeps sums in 32 bits, or
    None if an input's scale is too coarse for the output's."""
    for shift in SHIFTS_16:
        a_factor, b_factor = round(a / y * (1 << shift)), round(sign * b / y * (1 << shift))
        if max(abs(a_factor), abs(b_factor)) <= LARGEST_FACTOR_16:
            low, high = (int(v) for v in np.clip(np.rint(np.array([lo, hi]) / y), LOWEST, HIGHEST))
            return QAdd16(a_factor, b_factor, shift, low, high)
    return None


def product_of(a: Quant, b: Quant, y: Quant) -> QMul:
    """Return a * b for tensors with these scales."""
    multiplier, shift = multipliers([a.scale[0] * b.scale[0] / y.scale[0]])
    return QMul(a.zero_point[0], b.zero_point[0], int(multiplier[0]), shift, y.zero_point[0])


def quotient_of(a: Quant, b: Quant, y: Quant) -> QDiv:
    """Return a / b for tensors with these scales, with the largest shift that keeps its numerator in 32 bits. A ratio
    beyond all of them is as good as the largest: one step by 255 steps is at a limit already."""
    ratio = min(a.scale[0] / (b.scale[0] * y.scale[0]), LARGEST_NUMERATOR / (1 << QUOTIENT_SHIFTS[-1]))
    shift = next(s for s in QUOTIENT_SHIFTS if round(ratio * (1 << s)) <= LARGEST_NUMERATOR)
    return QDiv(a.zero_point[0], b.zero_point[0], round(ratio * (1 << shift)), shift, y.zero_point[0])


def squared_difference_of(a: Quant, b: Quant, y: Quant) -> QSquaredDifference | None:
    """Return (a - b)^2 for tensors with these scales, or None if the output's is too fine for them. The larger input's
    step is 2^13, so that a difference has 16 bits after it was divided by 2^7, and its square 31."""
    largest = max(a.scale[0], b.scale[0])
    a_factor, b_factor = (round(q.scale[0] / largest * (1 << 13)) for q in (a, b))
    multiplier, shift = multipliers([(largest / 64) ** 2 / y.scale[0]])
    if shift:
        return None
    zeros = (a.zero_point[0], b.zero_point[0])
    return QSquaredDifference(*zeros, a_factor, b_factor, int(multiplier[0]), y.zero_point[0])


def _params(call: Call[Any]) -> Params:
    own = fields_of(call.op, *(f.name for f in fields(call.op)))
    return Params(f"bt_{call.op.name}", (*loop_fields(call), *own))


def _has_rows(call: Call[Any]) -> bool:
    """Return whether both inputs are like the output along the innermost loop, for a word or more."""
    loops, word = loops_of(call), 4 // call.y.dtype.size
    return 0 < len(loops) <= LOOPS and loops[-1][0] >= word and loops[-1][1:] == (1, 1)


def _kernels(name: str, source: str, cpus: Mapping[str, Needs]) -> tuple[Kernel[Any], ...]:
    """Return the kernels of a function of two tensors, those for CPUs first."""
    ref = Kernel[Any](
        f"bt_{name}_ref",
        source,
        _params,
        fits=lambda call: len(loops_of(call)) <= LOOPS,
        overlap=overlap.elementwise,
        splits=cut.outermost,
    )
    return (*(ref.for_cpu(variant, needs, fits=_has_rows) for variant, needs in cpus.items()), ref)


ADD = _kernels("qadd", "qbinary/ref.c", {"mve": MVE, "dsp": DSP, "xcv": XCV})
ADD16 = _kernels("qadd16", "qwide/ref.c", {"mve": MVE, "dsp": DSP})
MUL = _kernels("qmul", "qbinary/ref.c", {"mve": MVE, "dsp": DSP})
DIV = _kernels("qdiv", "qbinary/ref.c", {})
SQUARED_DIFFERENCE = _kernels("qsquared_difference", "qbinary/ref.c", {})
