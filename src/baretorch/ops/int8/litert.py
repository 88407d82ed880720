"""Operators of 16 bits in the arithmetic of LiteRT's reference kernels: rescale, and litert_* for sums, products, leaky
ReLU, sigmoid, tanh and averages. See docs/arithmetic.md.

Files with activations of 16 bits (16x8) are compared with LiteRT's results layer by layer. These operators compute the
same numbers, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import floor, frexp, log2
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, DType, Op, Signature, Tensor
from baretorch.ops.elementwise import LOOPS, TYPE_NAMES, loop_fields, loops_of
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.families import Pointwise
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, fields_of
from baretorch.ops.helpers.window import Padding, Pair
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST
from baretorch.ops.int8.qbinary import QBinary
from baretorch.ops.int8.qpool import QPool, window_fields

INTEGERS = (DType.INT8, DType.INT16, DType.INT32)
SUM_BITS = 15  # by which a summand is shifted to the left before it is scaled


def _sigmoid_points() -> Array:
    """Return the sigmoid at every 24th, times 2^16. Each point is raised by half the error in the middle of the line to
    the next one; the last point is the largest number of 16 bits."""
    at = np.arange(256, dtype=np.float64)
    here, middle, after = (65536 / (1 + np.exp(-(at + step) / 24)) for step in (0.0, 0.5, 1.0))
    points = np.rint(here + (middle - (here + after) / 2) / 2)
    points[-1] = 65535
    return points.astype(np.int64)


SIGMOID = _sigmoid_points()


def away(v: Array, bits: Array | int) -> Array:
    """Return v / 2^bits, with half rounded away from zero."""
    half = (1 << np.asarray(bits)) >> 1
    return np.asarray((v + half - ((v < 0) & (half > 0))) >> bits)


def scaled(v: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """Return v * multiplier / 2^(31 - shift), rounded to whole numbers, and again if the shift is to the right. A shift
    to the left keeps the lower 32 bits."""
    kept = np.asarray(v << np.maximum(shift, 0)).astype(np.int32).astype(np.int64)
    return away((kept * multiplier + (1 << 30)) >> 31, np.maximum(np.negative(shift), 0))


def _scaled_signed(v: Array, multiplier: int, shift: int) -> Array:
    """Return the same for a multiplier whose sign is that of the result."""
    return -scaled(v, -multiplier, shift) if multiplier < 0 else scaled(v, multiplier, shift)


def multiplier_of(factor: float) -> tuple[int, int]:
    """Return (m, s) such that m / 2^31 * 2^s is nearest to the factor, with 31 bits of m; (0, 0) below 2^-32."""
    part, shift = frexp(abs(factor))
    m = floor(part * (1 << 31) + 0.5)
    m, shift = (m // 2, shift + 1) if m == 1 << 31 else (m, shift)
    if shift > 31:
        raise CompileError(f"the factor {factor:.3g} between two scales is too large", need="a factor below 2^31")
    return (0, 0) if shift < -31 else (m if factor > 0 else -m, shift)


@dataclass(frozen=True)
class Rescale(Pointwise, name="rescale"):
    """x int8, int16 or int32 -> scaled(x - x_zero) + zero as the integer type `to`, limited to its range."""

    to: str
    x_zero: int
    multiplier: int
    shift: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,), to = inputs, DType.of(self.to)
        valid = x.dtype in INTEGERS and to in INTEGERS and x.dtype.size + to.size > 2
        need(valid, self, f"{x.dtype.label} cannot become {self.to}", inputs, "two of int8, int16 and int32")
        assert to is not None
        return (Signature(x.shape, to),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        limits = np.iinfo(self.to)
        y = scaled(inputs[0].astype(np.int64) - self.x_zero, self.multiplier, self.shift) + self.zero
        return (np.clip(y, limits.min, limits.max).astype(self.to),)


def rescale_of(x_scale: float, x_zero: int, y_scale: float, zero: int, to: str) -> Rescale:
    """Return the operator from one scale to another."""
    return Rescale(to, x_zero, *multiplier_of(x_scale / y_scale), zero)


@dataclass(frozen=True)
class LiteRtAdd16(QBinary, name="litert_add16", dtype=DType.INT16):
    """a, b int16 -> the sum of scaled(a * 2^15) and scaled(b * 2^15), scaled, limited to [lo, hi]."""

    a_multiplier: int
    a_shift: int
    b_multiplier: int
    b_shift: int
    multiplier: int
    shift: int
    lo: int = LOWEST
    hi: int = HIGHEST

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) << SUM_BITS for x in inputs)
        total = scaled(a, self.a_multiplier, self.a_shift) + _scaled_signed(b, self.b_multiplier, self.b_shift)
        return (np.clip(scaled(total, self.multiplier, self.shift), self.lo, self.hi).astype(np.int16),)


def add16_of(a: float, b: float, y: float, sign: int, limits: tuple[int, int]) -> LiteRtAdd16:
    """Return a + sign * b for tensors with these scales."""
    twice = 2 * max(a, b)
    of_a, of_b, of_sum = map(multiplier_of, (a / twice, sign * b / twice, twice / ((1 << SUM_BITS) * y)))
    return LiteRtAdd16(*of_a, *of_b, *of_sum, *limits)


@dataclass(frozen=True)
class LiteRtMul16(QBinary, name="litert_mul16", dtype=DType.INT16):
    """a, b int16 -> scaled(a * b), limited to [lo, hi]."""

    multiplier: int
    shift: int
    lo: int = LOWEST
    hi: int = HIGHEST

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = (x.astype(np.int64) for x in inputs)
        return (np.clip(scaled(a * b, self.multiplier, self.shift), self.lo, self.hi).astype(np.int16),)


def mul16_of(a: float, b: float, y: float, limits: tuple[int, int]) -> LiteRtMul16:
    """Return a * b for tensors with these scales."""
    return LiteRtMul16(*multiplier_of(a * b / y), *limits)


@dataclass(frozen=True)
class Unary16(Pointwise):
    """A function of one int16 tensor, element by element."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(x.dtype is DType.INT16, self, "the input is not int16", inputs, "int16")
        return (Signature(x.shape, DType.INT16),)


@dataclass(frozen=True)
class LiteRtLeakyRelu16(Unary16, name="litert_leaky_relu16"):
    """x int16 -> scaled(x), and with the other factor where x is below 0."""

    multiplier: int
    shift: int
    alpha_multiplier: int
    alpha_shift: int

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        below = _scaled_signed(x, self.alpha_multiplier, self.alpha_shift)
        y = np.where(x < 0, below, scaled(x, self.multiplier, self.shift))
        return (np.clip(y, LOWEST, HIGHEST).astype(np.int16),)


def leaky_relu16_of(x: float, y: float, alpha: float) -> LiteRtLeakyRelu16:
    """Return the operator for tensors with these scales; LiteRT divides them in float32."""
    one, other, slope = np.float32(x), np.float32(y), np.float32(alpha)
    return LiteRtLeakyRelu16(*multiplier_of(float(one / other)), *multiplier_of(float(one * slope / other)))


@dataclass(frozen=True)
class LiteRtCurve16(Unary16, name="litert_curve16"):
    """x int16 -> sigmoid, or tanh, of x * multiplier / 2^shift / (3 * 2^12), with scale 1/32768: along a line between
    two points of the sigmoid."""

    multiplier: int
    shift: int
    tanh: bool = False

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        half = (1 << self.shift) >> 1
        v = (inputs[0].astype(np.int64) * self.multiplier + half) >> self.shift
        bits = 8 if self.tanh else 9  # between two points; tanh(x) is 2 sigmoid(2x) - 1
        size = np.abs(v)
        point = np.minimum(size >> bits, 254)
        up = (SIGMOID[point] << bits) + (size & ((1 << bits) - 1)) * (SIGMOID[point + 1] - SIGMOID[point])
        up = np.where(size >> bits < 255, up, (0xFFFF if self.tanh else 0xFFFE) << bits)
        if self.tanh:
            y = np.where(v < 0, (1 << 23) - up + 127, up - (1 << 23) + 128) >> 8
        else:
            y = np.where(v < 0, (1 << 25) - up + 511, up + 512) >> 10
        return (y.astype(np.int16),)


def curve16_of(x: float, tanh: bool) -> LiteRtCurve16:
    """Return sigmoid or tanh of a tensor with this scale. LiteRT's multiplier has 15 bits, except for 2^-12, and for
    tanh 2^-11."""
    if log2(x) in ((-12, -11) if tanh else (-12,)):
        return LiteRtCurve16(round(x * 4096 * 3), 0, tanh)
    factor, shift = x * 4096 * 3, 0
    if factor > HIGHEST:
        raise CompileError(f"the input's scale {x:g} is too large for a function of 16 bits", need="at most 2.6")
    while factor <= HIGHEST / 2 and shift <= 30:
        factor, shift = 2 * factor, shift + 1
    return LiteRtCurve16(int(factor), shift, tanh)


@dataclass(frozen=True)
class LiteRtAvgPool16(QPool, name="litert_avg_pool16", dtype=DType.INT16):
    """x int16[N, H, W, C] -> the mean of each window, half away from zero. Padding does not count."""

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        acc = self.places(inputs[0].astype(np.int64), 0).sum(axis=0)
        count = self.places(np.ones_like(inputs[0], np.int64), 0).sum(axis=0)
        return ((np.sign(acc) * ((np.abs(acc) + count // 2) // count)).astype(np.int16),)


def _binary_params(call: Call[Any]) -> Params:
    own = fields_of(call.op, *(f.name for f in fields(call.op)))
    return Params(f"bt_{call.op.name}", (*loop_fields(call), *own))


def _unary_params(call: Call[Any]) -> Params:
    names = [f.name for f in fields(call.op) if f.name != "to"]
    return Params(f"bt_{call.op.name}", (("count", call.x.count), *fields_of(call.op, *names)))


def _table(call: Call[Any]) -> tuple[Packed, ...]:
    return (Packed("table", SIGMOID.astype(np.uint16).view(np.int16)),)


def _elementwise(name: str, params: Any, **others: Any) -> Kernel[Any]:
    return Kernel(f"bt_{name}_ref", "litert/ref.c", params, overlap=overlap.elementwise, splits=cut.outermost, **others)


def _binary(name: str) -> tuple[Kernel[Any], ...]:
    return (_elementwise(name, _binary_params, fits=lambda call: len(loops_of(call)) <= LOOPS),)


def _from_to(x: DType, y: DType) -> Kernel[Rescale]:
    name = f"rescale_{TYPE_NAMES[x]}_{TYPE_NAMES[y]}"
    return _elementwise(name, _unary_params, fits=lambda call: (call.x.dtype, call.y.dtype) == (x, y))


KERNELS: dict[type[Op], tuple[Kernel[Any], ...]] = {
    Rescale: tuple(_from_to(x, y) for x in INTEGERS for y in INTEGERS if x.size + y.size > 2),
    LiteRtAdd16: _binary("litert_add16"),
    LiteRtMul16: _binary("litert_mul16"),
    LiteRtLeakyRelu16: (_elementwise("litert_leaky_relu16", _unary_params),),
    LiteRtCurve16: (_elementwise("litert_curve16", _unary_params, pack=_table),),
    LiteRtAvgPool16: (
        Kernel(
            "bt_litert_avg_pool16_ref",
            "litert/ref.c",
            lambda call: Params("bt_qmax_pool2d", window_fields(call)),
            splits=cut.rows,
        ),
    ),
}
