"""Int8 operators that compute an operator of an integer network and the RequantShift after it, where that is exact.

A RequantShift computes (acc * factor + offset + 2^(s-1)) >> s with a factor per channel, and an int8 layer
(((acc + bias) << shift) * multiplier + 2^31) >> 32. Both are equal for multiplier << shift = factor << (32 - s) if the
offset is `bias` times the factor, or differs from it too little to change a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.onnx.integer import LEAST, MOST, Form, IntegerLowering, Range, Requant
from baretorch.frontends.windows import Windows
from baretorch.ir.graph import Array, Op
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.int8.arithmetic import LARGEST_SHIFT
from baretorch.ops.int8.integer import IntTable
from baretorch.ops.int8.integer_sums import IntConv2d, IntMatmul
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.qbinary import LARGEST_FACTOR, SHIFTS, QAdd, QMul
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear
from baretorch.ops.int8.qmatmul import QMatmul
from baretorch.ops.int8.rules import EVERY


@dataclass(frozen=True, eq=False)
class Exact:
    """The constants of an int8 layer that replace those of a RequantShift, per channel. Weights are multiplied by
    `sign`."""

    sign: Array
    bias: Array
    multiplier: Array
    shift: int


LARGEST = 1 << 30  # of a factor: its multiplier has less than 63 bits
MOST_STEPS = 1 << 15  # of an output, that are added after the shift


def exact(factor: Array, offset: Array, shift: int) -> Exact | None:
    """Return the constants of an int8 layer that computes the same as a RequantShift; None if no constants do."""
    if not factor.size or not factor.all() or np.abs(factor).max() >= LARGEST:
        return None
    m, half = np.abs(factor), (1 << shift) >> 1
    bias = offset // m
    rest = offset - bias * m
    unit = np.minimum(m & -m, 1 << shift)  # the accumulator's part is a multiple of it
    if ((half + rest) // unit != half // unit).any():
        return None
    wide = m << (32 - shift)
    left = max(0, int(wide.max()).bit_length() - 31)
    if left > LARGEST_SHIFT or (wide & ((1 << left) - 1)).any():
        return None
    return Exact(np.sign(factor), bias, (wide >> left).astype(np.int32), left)


def along(data: Array, rank: int, axis: int, count: int) -> Array | None:
    """Return a constant that broadcasts to this rank as one number for each place of an axis, or None if it differs
    elsewhere."""
    if data.size == 1:
        return np.full(count, data.reshape(()))
    full = data.reshape((1,) * (rank - data.ndim) + data.shape)
    return full.reshape(-1) if full.size == full.shape[axis] == count else None


def uniform(by: Requant) -> tuple[Array, Array] | None:
    """Return factor and offset if they are those of the whole tensor."""
    return (by.factor.reshape(1), by.offset.reshape(1)) if by.factor.size == by.offset.size == 1 else None


@dataclass(frozen=True, eq=False)
class LayerForm(Form):
    """A convolution, or a linear layer if it has no windows, with constant weights [out, ...] in the file's order and
    whole biases. Channels are the output's `axis`."""

    x: str
    held: Range
    weight: Array
    bias: Array
    axis: int
    windows: Windows | None = None
    groups: int = 1

    @property
    def rows(self) -> Array:
        return self.weight.reshape(len(self.weight), -1)

    def limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest sum of each channel."""
        held = self.held if self.windows is None else self.held.including(0)  # which is padding
        ends = np.stack([self.rows * held.lo, self.rows * held.hi])
        return self.bias + ends.min(axis=0).sum(axis=1), self.bias + ends.max(axis=0).sum(axis=1)

    def with_bias(self, more: Array) -> LayerForm:
        return replace(self, bias=self.bias + more)

    def add(self, g: IntegerLowering, what: str) -> str:
        """Add the layer with sums as int32."""
        low, high = self.limits()
        held = g.need_32_bits(what, int(low.min(initial=0)), int(high.max(initial=0)))
        zero = self._zero()
        g.need_32_bits(what, *(int(f(self._fold_zeros(self.bias, self.rows))) for f in (np.min, np.max)))
        constants = (self._taps(g, self.weight), g.ints32(self._fold_zeros(self.bias, self.rows)))
        if self.windows is not None:
            w = self.windows
            y = g.nhwc(IntConv2d(zero, w.step, w.around, w.reach, self.groups), self.x, *constants, dims=w.dims)
        else:
            y = self._by_row(g, IntConv2d(zero), *constants)
        return g.hold(y, held, self)

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        shape = g.shape(self.x)
        rank, out = len(shape), len(self.weight)
        factor, offset = (along(v, rank, self.axis, out) for v in (by.factor, by.offset))
        made = None if factor is None or offset is None else exact(factor, offset, by.shift)
        if made is None:
            return None
        weight = self.weight * made.sign.reshape(-1, *(1,) * (self.weight.ndim - 1))
        low, high = self.limits()
        turned = made.sign < 0
        low, high = np.where(turned, -high, low) + made.bias, np.where(turned, -low, high) + made.bias
        bias = self._fold_zeros(self.bias * made.sign + made.bias, weight.reshape(out, -1))
        largest = max(int(np.abs(v).max()) for v in (low, high, bias))
        if weight.max() > 127 or largest << made.shift > MOST:
            return None
        constants = (self._taps(g, weight), g.ints32(bias), g.ints32(made.multiplier))
        own = (by.zero, made.shift, *by.limits)
        if self.windows is None:
            return g.b.add(QLinear(*own), self.x, *constants)
        w = self.windows
        op = QConv2d(self._zero(), *own, w.step, w.around, w.reach, self.groups)
        return g.nhwc(op, self.x, *constants, dims=w.dims)

    def _zero(self) -> int:
        assert self.held.zero is not None
        return self.held.zero

    def _fold_zeros(self, bias: Array, rows: Array) -> Array:
        """Return biases that include the input's zero."""
        return np.asarray(bias - self._zero() * rows.sum(axis=1))

    def _taps(self, g: IntegerLowering, weight: Array) -> str:
        """Return the weight in the Graph's order."""
        if self.windows is None:
            return g.b.const("weight", weight.astype(np.int8))
        out, depth, *kernel = weight.shape
        image = weight.reshape(out, depth, *(1,) * (2 - len(kernel)), *kernel)
        return g.b.const("weight", image.transpose(0, 2, 3, 1).astype(np.int8))

    def _by_row(self, g: IntegerLowering, op: Op, weight: str, bias: str) -> str:
        """Apply a convolution of single pixels to rows."""
        out, in_ = g.shape(weight)
        shape = g.shape(self.x)
        image = g.reshape(self.x, (1, prod(shape[:-1]), 1, in_))
        y = g.b.add(op, image, g.reshape(weight, (out, 1, 1, in_)), bias)
        return g.reshape(y, (*shape[:-1], out))


@dataclass(frozen=True, eq=False)
class ProductForm(Form):
    """A matrix product of two tensors of bytes."""

    a: str
    b: str
    zeros: tuple[int, int]
    largest: int  # of its sums, without sign

    def add(self, g: IntegerLowering, held: Range) -> str:
        return g.hold(g.b.add(IntMatmul(*self.zeros), self.a, self.b), held, self)

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        constants = uniform(by)
        if constants is None:
            return None
        factor, offset = constants
        steps = int(offset[0]) >> by.shift  # whole ones are added after the shift
        made = exact(factor, offset - (steps << by.shift), by.shift)
        if made is None or made.bias.any() or made.sign[0] < 0 or self.largest << made.shift > MOST:
            return None
        if abs(steps) > MOST_STEPS:
            return None
        op = QMatmul(*self.zeros, int(made.multiplier[0]), made.shift, by.zero + steps, *by.limits)
        return g.b.add(op, self.a, self.b)


@dataclass(frozen=True, eq=False)
class PairForm(Form):
    """A sum, difference or product of two tensors of bytes, element by element."""

    op: type[Add] | type[Sub] | type[Mul]
    a: str
    b: str
    zeros: tuple[int, int]

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        constants = uniform(by)
        if constants is None:
            return None
        op = self._product(by, *constants) if self.op is Mul else self._sum(by, *constants)
        return None if op is None else g.b.add(op, self.a, self.b)

    def _sum(self, by: Requant, factor: Array, offset: Array) -> Op | None:
        """Return the sum with factors of 16 bits that round all sums of two bytes as this factor does."""
        sign = -1 if self.op is Sub else 1
        ends = [(-128 - z, 127 - z) for z in self.zeros]
        low, high = ends[0][0] + min(sign * v for v in ends[1]), ends[0][1] + max(sign * v for v in ends[1])
        sums = np.arange(low, high + 1)
        y = by.apply(sums)
        for shift in SHIFTS:
            near = int(factor[0]) << shift >> by.shift
            for f in (near, near + 1):
                least = np.where(y > by.to.lo, (y << shift) - f * sums, LEAST).max()
                most = np.where(y < by.to.hi, ((y + 1) << shift) - 1 - f * sums, MOST).min()
                if abs(f) <= LARGEST_FACTOR and least <= most:
                    middle = int(least + most) >> 1
                    start = middle - f * (self.zeros[0] + sign * self.zeros[1]) + (by.zero << shift)
                    if abs(start) + 256 * abs(f) <= MOST:
                        return QAdd(f, sign * f, start, shift, *by.limits)
        return None

    def _product(self, by: Requant, factor: Array, offset: Array) -> Op | None:
        made = exact(factor, offset, by.shift)
        if made is None or made.bias.any() or made.sign[0] < 0 or 255 * 255 << made.shift > MOST:
            return None
        return QMul(*self.zeros, int(made.multiplier[0]), made.shift, by.zero, *by.limits)


@dataclass(frozen=True, eq=False)
class ByteForm(Form):
    """A function of one tensor of bytes, by its value for each byte."""

    x: str
    held: Range
    values: Array  # int64, for the bytes from -128 to 127

    @classmethod
    def of(cls, x: str, held: Range, function: Callable[[Array], Array]) -> ByteForm:
        """Return the function of the numbers in a tensor's range. Bytes outside of it count as its ends."""
        assert held.zero is not None
        return cls(x, held, function(np.clip(EVERY.astype(np.int64) - held.zero, held.lo, held.hi)))

    @property
    def range(self) -> Range:
        return Range(int(self.values.min()), int(self.values.max()))

    def add(self, g: IntegerLowering, what: str) -> str:
        """Add the function as bytes if they hold its values, else as int32."""
        held = g.need_32_bits(what, self.range.lo, self.range.hi)
        if held.zero is None:
            return g.hold(g.b.add(IntTable(), self.x, g.ints32(self.values)), held, self)
        table = g.b.const("table", (self.values + held.zero).astype(np.int8))
        return g.hold(g.b.add(Lookup(), self.x, table), held, self)

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        return None if uniform(by) is None else replace(self, values=by.apply(self.values)).add(g, "RequantShift")


@dataclass(frozen=True, eq=False)
class LimitedForm(Form):
    """A quotient that is limited to 32 bits, and could be as large as `reach` without sign. It is exact for a
    requantization that limits it further."""

    x: str
    reach: int

    def requantize(self, g: IntegerLowering, by: Requant) -> str | None:
        rises = by.factor > 0  # else it falls, or does not depend on x
        above, below = np.where(rises, by.to.hi, by.to.lo), np.where(rises, by.to.lo, by.to.hi)
        if (
            not by.factor.all()
            or (by.apply(np.array(MOST)) != above).any()
            or (by.apply(np.array(LEAST)) != below).any()
        ):
            self.need_requant()
        return by.add(g, self.x)

    def need_requant(self) -> None:
        raise CompileError(
            "a quotient can leave 32 bits",
            have=f"up to {self.reach:,}",
            need="a RequantShift after it whose levels limit what exceeds 32 bits",
        )
