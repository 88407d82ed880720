"""int_softmax, ita_softmax and int_norm: softmax and norms of integer networks along the last axis. See integer.py.

The softmax of I-BERT has a polynomial for e^x, that of the accelerator ITA powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Piece, Shape, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import (
    Call,
    Fields,
    Kernel,
    Packed,
    Params,
    data_of,
    fields_of,
    has_constants,
    pack_inputs,
)

MOST_IN_ROW = 1 << 15  # numbers in a row: sums of their squares have 31 bits


@dataclass(frozen=True)
class Row(Op):
    """An operator from each row of an int8 tensor to a row of its length."""

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        valid = x.dtype is DType.INT8 and bool(x.shape) and 0 < x.shape[-1] <= MOST_IN_ROW
        need(
            valid, self, "the input is not int8, or its rows are too long", inputs, f"int8, rows of 1 to {MOST_IN_ROW}"
        )
        return (Signature(x.shape, DType.INT8),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(self, dims) if dims[-1] == len(dims) - 1 else None

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == len(y.shape) - 1 else cut.from_first(self, inputs, axis, start, stop)


@dataclass(frozen=True)
class IntSoftmax(Row, name="int_softmax", carried=slice(1)):
    """x int8[..., n], weights int32[256] -> zero + weights[d] * most / their sum, rounded down, where d is the distance
    of x from the largest number of its row. The first weight is above 0; 32 bits hold a sum, and `most` times a
    weight."""

    most: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, weights = inputs
        (made,) = super().infer(inputs)
        right = weights.dtype is DType.INT32 and weights.shape == (256,) and 0 < self.most <= 255
        most = ((1 << 32) - 1) // max(self.most, x.shape[-1])
        if right and weights.data is not None:
            right = bool(weights.data.min() >= 0 and weights.data.max() <= most and weights.data[0] > 0)
        need(right, self, "the weights do not fit", inputs, f"int32[256] from 0 to {most:,}, the first above 0")
        return (made,)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weights = (i.astype(np.int64) for i in inputs)
        e = weights[x.max(axis=-1, keepdims=True) - x]
        return ((e * self.most // e.sum(axis=-1, keepdims=True) + self.zero).astype(np.int8),)


@dataclass(frozen=True)
class ItaSoftmax(Row, name="ita_softmax"):
    """x int8[..., n] -> zero + ((256 * most / sum) >> s), where s is a 32nd of the distance of x from the largest
    number of its row, half up, and the sum is that of 256 >> s.

    Rows are read in groups of `group` numbers, or whole if that is 0: the sum so far is shifted right where a group has
    a larger number than all before."""

    most: int
    zero: int
    group: int = 0

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (made,) = super().infer(inputs)
        valid = 0 < self.most <= 255 and self.group >= 0 and not (self.group and made.shape[-1] % self.group)
        need(valid, self, f"groups of {self.group} do not fit", inputs, "rows of whole groups, and 1 to 255 at most")
        return (made,)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        groups = x.reshape(*x.shape[:-1], -1, self.group or x.shape[-1])
        largest, total = np.full(x.shape[:-1], -128), np.zeros(x.shape[:-1], np.int64)
        for i in range(groups.shape[-2]):
            now = np.maximum(largest, groups[..., i, :].max(axis=-1))
            total = (total >> _shift(now - largest)) + (256 >> _shift(now[..., None] - groups[..., i, :])).sum(axis=-1)
            largest = now
        inverse = 256 * self.most // total
        return (((inverse[..., None] >> _shift(largest[..., None] - x)) + self.zero).astype(np.int8),)


def _shift(distance: Array) -> Array:
    return np.asarray((distance + 16) >> 5)


@dataclass(frozen=True)
class IntNorm(Row, name="int_norm", carried=slice(1)):
    """x int8[..., n], weight and bias int32[n] -> (((d * weight) / deviation) + bias) >> shift, limited, where d is
    x - x_zero, less the mean of its row if `centred`, and the deviation is the root of the mean of d^2, plus 1.

    The quotient and the mean of the row are rounded toward 0, all others down."""

    x_zero: int
    shift: int
    centred: bool
    lo: int = -128
    hi: int = 127

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, *affine = inputs
        right = all(t.dtype is DType.INT32 and t.shape == x.shape[-1:] for t in affine) and 0 <= self.shift <= 31
        need(right, self, "weight or bias do not fit", inputs, "int32[n], and a shift of 0 to 31")
        return super().infer(inputs)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, weight, bias = (i.astype(np.int64) for i in inputs)
        d, count = x - self.x_zero, x.shape[-1]
        if self.centred:
            d = d - _toward_zero(d.sum(axis=-1, keepdims=True), np.array(count))
        squares = (d * d).sum(axis=-1, keepdims=True) // count + 1
        deviation = np.array([isqrt(int(v)) for v in squares.reshape(-1)], np.int64).reshape(squares.shape)
        y = (_toward_zero(d * weight, deviation) + bias) >> self.shift
        return (np.clip(y, self.lo, self.hi).astype(np.int8),)


def _toward_zero(a: Array, b: Array) -> Array:
    return np.asarray(np.sign(a) * (np.abs(a) // b))


def _rows(call: Call[Any]) -> Fields:
    return (("rows", prod(call.x.shape[:-1])), ("length", call.x.shape[-1]))


def _ita_params(call: Call[ItaSoftmax]) -> Params:
    group = call.op.group or call.x.shape[-1]
    return Params("bt_ita_softmax", (*_rows(call), ("group", group), *fields_of(call.op, "most", "zero")))


def _norm_params(call: Call[IntNorm]) -> Params:
    return Params("bt_int_norm", (*_rows(call), *fields_of(call.op, "x_zero", "centred", "shift", "lo", "hi")))


def _pack_norm(call: Call[IntNorm]) -> tuple[Packed, ...]:
    return pack_inputs(call, "weight", "bias")


def _short(call: Call[IntNorm]) -> bool:
    """Return whether 32 bits are enough."""
    if not has_constants(call):
        return False
    weight, bias = (np.abs(data_of(call.inputs, i).astype(np.int64)) for i in (1, 2))
    return bool((255 * weight + bias).max(initial=0) < 1 << 31)


INT_SOFTMAX: tuple[Kernel[IntSoftmax], ...] = (
    Kernel(
        "bt_int_softmax_ref",
        "integer/rows_ref.c",
        lambda call: Params("bt_int_softmax", (*_rows(call), *fields_of(call.op, "most", "zero"))),
        fits=has_constants,
        pack=lambda call: pack_inputs(call, "weights"),
        overlap=overlap.elementwise,
        splits=cut.rows,
    ),
)
ITA_SOFTMAX: tuple[Kernel[ItaSoftmax], ...] = (
    Kernel("bt_ita_softmax_ref", "integer/rows_ref.c", _ita_params, overlap=overlap.elementwise, splits=cut.rows),
)
INT_NORM: tuple[Kernel[IntNorm], ...] = tuple(
    Kernel(
        f"bt_int_norm{kind}_ref",
        "integer/rows_ref.c",
        _norm_params,
        fits=fits,
        pack=_pack_norm,
        overlap=overlap.elementwise,
        splits=cut.rows,
    )
    for kind, fits in (("_short", _short), ("", has_constants))
)
