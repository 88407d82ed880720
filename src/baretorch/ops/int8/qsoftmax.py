"""qsoftmax, qlog_softmax and qsoftmax16: softmax of int8 or int16 numbers, and its logarithm, in integers only. See
docs/arithmetic.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Piece, Quant, Signature, Tensor
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Fields, Kernel, Packed, Params, fields_of
from baretorch.ops.int8.arithmetic import HIGHEST, dequantize, multipliers, requantize
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.rules import EVERY, StaysFloat, Walk, fits_32_bits
from baretorch.ops.layout import Permute
from baretorch.ops.softmax import Softmax
from baretorch.targets.features import DSP, MVE

LONGEST = 1 << 16  # numbers in a row: a sum of more could leave 32 bits
RESULT = Quant((1 / 256,), (-128,))


@dataclass(frozen=True)
class QSoftmax(Op, name="qsoftmax"):
    """x int8[..., n] with this scale -> its softmax along the last axis, int8 with scale 1/256 and zero point -128."""

    result: ClassVar[Signature] = Signature((), DType.INT8, RESULT)
    scale: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,), label = inputs, self.result.dtype.label
        valid = x.dtype is self.result.dtype and bool(x.shape) and 0 < x.shape[-1] <= LONGEST
        what = f"the input does not have the type and scale of an {label} softmax"
        need(valid, self, what, inputs, f"{label}, 1 to {LONGEST} along the last axis")
        return (replace(self.result, shape=x.shape),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        e = self.table()[x.max(axis=-1, keepdims=True) - x].astype(np.int64)
        inverse = 0xFFFFFFFF // e.sum(axis=-1, keepdims=True)
        return ((np.minimum(((e * inverse >> 23) + 1) >> 1, 255) - 128).astype(np.int8),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == len(y.shape) - 1 else cut.from_first(self, inputs, axis, start, stop)

    def table(self) -> Array:
        """Return a table of 256 entries in 16 bits: e^(-i), with i, the distance from the largest, in steps."""
        return np.asarray(np.rint(65535 * np.exp(-self.scale * np.arange(256))), np.uint16)


@dataclass(frozen=True)
class QLogSoftmax(QSoftmax, name="qlog_softmax"):
    """x int8[..., n] with this scale -> the logarithm of its softmax along the last axis, requantized from steps of
    2^-20."""

    multiplier: int
    shift: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (signature,) = super().infer(inputs)
        return (replace(signature, quant=None),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        distance = x.max(axis=-1, keepdims=True) - x
        total = self.table()[distance].astype(np.int64).sum(axis=-1, keepdims=True)
        acc = -distance * round(self.scale * POINT) - (_log(total) - _log(np.array(65535)))
        return (requantize(acc, np.array(self.multiplier), self.shift, self.zero, -128, 127),)


@dataclass(frozen=True)
class QSoftmax16(QSoftmax, name="qsoftmax16", result=Signature((), DType.INT16, Quant((1 / 32768,), (0,)))):
    """x int16[..., n] with this scale -> its softmax along the last axis, int16 with scale 1/32768."""

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        distance = x.max(axis=-1, keepdims=True) - x
        high, low = self.table().astype(np.int64).reshape(2, 256)
        e = (high[distance >> 8] * low[distance & 255] + (1 << 15)) >> 16
        inverse = 0xFFFFFFFF // e.sum(axis=-1, keepdims=True)
        return (np.minimum(((e * inverse >> 16) + 1) >> 1, HIGHEST).astype(np.int16),)

    def table(self) -> Array:
        """Return two tables of 256 entries in 16 bits: e^(-256 i) and e^(-i), with i in steps of the scale."""
        steps = np.arange(256) * self.scale
        return np.asarray(np.rint(65535 * np.exp(-np.concatenate([256 * steps, steps]))), np.uint16)


POINT = 1 << 20
LN2 = round(log(2) * POINT)
LOGS = np.rint(np.log1p(np.arange(257) / 256) * (POINT >> 4)).astype(np.uint16)


def _log(total: Array) -> Array:
    """Return the logarithm in steps of 2^-20: that of the highest bit, plus that of the 8 bits below, interpolated by
    15 more."""
    power = np.floor(np.log2(total)).astype(np.int64)  # exact: totals are whole numbers below 2^32
    high = total.astype(np.int64) << (31 - power)
    index, rest = high >> 23 & 255, high >> 8 & 0x7FFF
    first, then = (LOGS[i].astype(np.int64) for i in (index, index + 1))
    return np.asarray(power * LN2 + (first + ((then - first) * rest >> 15) << 4))


def log_softmax_of(x: Quant, y: Quant) -> QLogSoftmax:
    """Return the operator for tensors with these scales."""
    multiplier, shift = multipliers([1 / (POINT * y.scale[0])])
    return QLogSoftmax(x.scale[0], int(multiplier[0]), shift, y.zero_point[0])


def softmax(walk: Walk, node: Node) -> None:
    """Add the int8 form of softmax or log_softmax along the last axis; another axis is moved there."""
    op, (x,), (out,) = node.op, node.inputs, node.outputs
    assert isinstance(op, Softmax)
    shape, quant, y = walk.graph[x].shape, walk.scale(x), walk.scale(out)
    if not 0 < shape[op.axis] <= LONGEST:
        raise StaysFloat(f"it has {shape[op.axis]} numbers in a row, and an int8 softmax up to {LONGEST}")
    if y.bits == 16 and type(op) is Softmax:
        _softmax16(walk, node, op)
        return
    made, result = (QSoftmax(quant.scale[0]), RESULT) if type(op) is Softmax else (log_softmax_of(quant, y), y)
    if isinstance(made, QLogSoftmax):
        fits_32_bits(round(256 * made.scale * POINT) << made.shift)
    order = (*(i for i in range(len(shape)) if i != op.axis), op.axis)
    rows = walk.view(Permute(order), x, walk.int8(x))
    shares = walk.add(made, out, walk.tensor(rows).shape, result, rows)
    back = walk.view(Permute(tuple(int(i) for i in np.argsort(order))), out, shares)
    if y != result:
        values = dequantize(EVERY, result.scale[0], result.zero_point[0])
        back = walk.add(Lookup(), out, shape, y, back, walk.table(out, values, y))
    walk.stored[out] = back


def _softmax16(walk: Walk, node: Node, op: Softmax) -> None:
    """Add the int16 form of a softmax along the last axis; another axis is moved there."""
    (x,), (out,) = node.inputs, node.outputs
    if walk.scale(out) != RESULT:
        raise StaysFloat("its result does not have the scale of an int16 softmax")
    rank = len(walk.graph[x].shape)
    order = (*(i for i in range(rank) if i != op.axis), op.axis)
    rows = walk.int16(x)
    if order == tuple(range(rank)):
        walk.wide[out] = walk.add_int16(QSoftmax16(walk.finer_scale(x)), out, rows)
        return
    shares = walk.add_int16(QSoftmax16(walk.finer_scale(x)), out, walk.add_int16(Permute(order), x, rows))
    walk.wide[out] = walk.add_int16(Permute(tuple(int(i) for i in np.argsort(order))), out, shares)


def _rows(call: Call[Any]) -> Fields:
    return (("rows", prod(call.x.shape[:-1])), ("length", call.x.shape[-1]))


def _log_params(call: Call[QLogSoftmax]) -> Params:
    op = call.op
    own = (("scale", round(op.scale * POINT)), *fields_of(op, "multiplier", "shift", "zero"))
    return Params("bt_qlog_softmax", (*_rows(call), *own))


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    return (Packed("table", call.op.table().view(np.int16)),)


def _log_pack(call: Call[QLogSoftmax]) -> tuple[Packed, ...]:
    return (*_pack(call), Packed("logs", LOGS.view(np.int16)))


_REF = Kernel[Any](
    "bt_qsoftmax_ref",
    "qsoftmax/ref.c",
    lambda call: Params("bt_qsoftmax", _rows(call)),
    pack=_pack,
    overlap=overlap.elementwise,
    splits=cut.rows,
)
SOFTMAX = (_REF,)
LOG_SOFTMAX = (replace(_REF, symbol="bt_qlog_softmax_ref", params=_log_params, pack=_log_pack),)
_REF16 = replace(
    _REF,
    symbol="bt_qsoftmax16_ref",
    source="qwide/ref.c",
    params=lambda call: Params("bt_qsoftmax16", _rows(call)),
)
SOFTMAX16 = (
    replace(_REF16.for_cpu("mve", MVE), source="qwide/softmax_mve.c"),
    replace(_REF16.for_cpu("dsp", DSP), source="qwide/softmax_dsp.c"),
    _REF16,
)
