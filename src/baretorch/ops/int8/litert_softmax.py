"""litert_softmax8 and litert_softmax16: softmax of int8 and int16 numbers with a result of 16 bits, in LiteRT's
arithmetic. See docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Piece, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params
from baretorch.ops.int8.arithmetic import HIGHEST, LOWEST
from baretorch.ops.int8.gates import half_up
from baretorch.ops.int8.litert import away, multiplier_of, scaled

ONE = (1 << 31) - 1
# e^-1/4, e^-1/2, e^-1, ... with 31 fractional bits
FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
DIFFERENCE_BITS = 26  # fractional bits of a difference of int8 numbers
SMALL_BITS = 12  # by which an exponential is shifted to the right before they are added
POINTS = 513  # of a curve, with lines between them


@dataclass(frozen=True)
class LiteRtSoftmax(Op):
    """A softmax along the last axis."""

    takes: ClassVar[DType]
    longest: ClassVar[int]  # row, so that no sum leaves 32 bits

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,), label = inputs, self.takes.label
        valid = x.dtype is self.takes and bool(x.shape) and 0 < x.shape[-1] <= self.longest
        wanted = f"{label}, 1 to {self.longest} along the last axis"
        need(valid, self, f"the input does not have the type and length of an {label} softmax", inputs, wanted)
        return (Signature(x.shape, DType.INT16),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == len(y.shape) - 1 else cut.from_first(self, inputs, axis, start, stop)

    def table(self) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class LiteRtSoftmax8(LiteRtSoftmax, name="litert_softmax8", takes=DType.INT8, longest=4095):
    """x int8[..., n] with this scale times beta -> its softmax, int16 with scale 1/65536 and zero point -32768."""

    scale: float

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        e = self.table().astype(np.int64)[x.max(axis=-1, keepdims=True) - x]
        total = away(e, SMALL_BITS).sum(axis=-1, keepdims=True)
        room = 31 - np.floor(np.log2(total)).astype(np.int64)
        inverse = _reciprocal((total << room) - (1 << 31))
        share = away(_product(inverse, e), 27 - room)
        return (np.clip(share - 32768, LOWEST, HIGHEST).astype(np.int16),)

    def table(self) -> Array:
        """Return e^(-i) with 31 fractional bits, where i is the distance from the largest in steps. It is 0 where
        LiteRT rounds it to 0."""
        multiplier, shift = multiplier_of(min(self.scale * (1 << DIFFERENCE_BITS), 2.0**31 - 1))
        furthest = floor(31 * (1 << DIFFERENCE_BITS) / 2.0**shift)
        steps = np.arange(256, dtype=np.int64)
        e = _exp(scaled(-np.minimum(steps, furthest), multiplier, shift))
        return np.asarray(np.where(steps <= furthest, e, 0), np.int32)


@dataclass(frozen=True)
class LiteRtSoftmax16(LiteRtSoftmax, name="litert_softmax16", takes=DType.INT16, longest=1 << 16):
    """x int16[..., n] with this scale times beta -> its softmax, int16 with scale 1/32768."""

    scale: float

    @cached_property
    def factor(self) -> tuple[int, int]:
        """Return multiplier and shift, from steps of the input to those of a table that ends at e^-10."""
        return multiplier_of(self.scale / (10.0 / 65535.0))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, (exp, inverse) = inputs[0].astype(np.int64), self.table().astype(np.int64).reshape(2, POINTS)
        distance = scaled(x - x.max(axis=-1, keepdims=True), *self.factor)
        e = _between(exp, np.clip(distance, -65535, 0) + 32767)
        total = e.sum(axis=-1, keepdims=True)
        bits = np.floor(np.log2(total)).astype(np.int64)
        above = (((total << (30 - bits)) + (1 << 13)) >> 14) - (1 << 16)
        share = _between(inverse, np.clip(above - (1 << 15), LOWEST, HIGHEST))
        y = (e * share + (1 << (bits - 1))) >> bits
        return (np.clip(y, 0, HIGHEST).astype(np.int16),)

    def table(self) -> Array:
        """Return the points of e^x from -10 to 0, then those of 1 / (1 + x) from 0 to 1."""
        return np.concatenate(
            [_points(10.0, -10.0, np.exp), _points(1.0, 0.0, lambda x: np.float32(1) / (np.float32(1) + x))]
        )


def _points(width: float, first: float, function: Callable[[Array], Array]) -> Array:
    """Return the points of a function, in 16 bits, each moved by half the error between it and the next one; computed
    in float32, as in LiteRT."""
    step = np.float32(width / 65535.0) * np.float32(65535) / np.float32(POINTS - 1)
    start = np.float32(width / 65535.0) * np.float32(-65535 if first else 0)
    at = start + np.arange(POINTS, dtype=np.float32) * step
    unit = np.float32(65536) / (np.float32(2.0 / 65535.0) * np.float32(65535))
    y = function(at) * unit
    middle = _round(function(at[:-1] + step / np.float32(2)) * unit)
    straight = _round((y[1:] + _round(y[:-1])) / np.float32(2))
    points = np.append(_round(y[:-1]) - _round((straight - middle) / np.float32(2)), _round(y[-1:]))
    return np.asarray(np.clip(points, LOWEST, HIGHEST), np.int16)


def _round(x: Array) -> Array:
    """Round half away from zero."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x), np.float32)


def _between(points: Array, v: Array) -> Array:
    first = 256 + (v >> 7)
    return np.asarray(points[first] + (((points[first + 1] - points[first]) * (v & 127) + 64) >> 7))


def _product(a: Array, b: Array | int) -> Array:
    return half_up(a * b, 31)


def _exp(v: Array) -> Array:
    """Return e^v with 31 fractional bits, for v with 26 that are 0 or below: a series around -1/8 for the rest below
    quarters, then a factor for each power of two."""
    quarter = 1 << (DIFFERENCE_BITS - 2)
    rest = (v & (quarter - 1)) - quarter
    x = (rest << 5) + (1 << 28)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    series = away(_product(away(x4, 2) + x3, 715827883) + x2, 1)
    e = 1895147668 + _product(x + series, 1895147668)
    quarters = (rest - v) >> (DIFFERENCE_BITS - 2)
    for i, factor in enumerate(FACTORS):
        e = np.where(quarters >> i & 1, _product(e, factor), e)
    return np.asarray(np.where(v == 0, ONE, e))


def _reciprocal(d: Array) -> Array:
    """Return 2^31 / (1 + d / 2^31), by three steps of Newton's method from 48/17 - 32/17 (1 + d) / 2 on."""
    half = (d + ONE + 1) >> 1
    x = 1515870810 + _product(half, -1010580540)
    for _ in range(3):
        x = x + 4 * _product(x, (1 << 29) - _product(half, x))
    return np.asarray(np.minimum(2 * x, ONE))


def _params(call: Call[Any]) -> Params:
    multiplier, shift = call.op.factor if isinstance(call.op, LiteRtSoftmax16) else (0, 0)
    rows = (("rows", prod(call.x.shape[:-1])), ("length", call.x.shape[-1]))
    return Params("bt_litert_softmax", (*rows, ("multiplier", multiplier), ("shift", shift)))


def _kernel(name: str, **others: Any) -> tuple[Kernel[Any], ...]:
    return (
        Kernel(
            f"bt_{name}_ref",
            "litert/ref.c",
            _params,
            pack=lambda call: (Packed("table", call.op.table()),),
            splits=cut.rows,
            **others,
        ),
    )


SOFTMAX8 = _kernel("litert_softmax8")
SOFTMAX16 = _kernel("litert_softmax16", overlap=overlap.elementwise)
