"""qadd16, qmax_pool16, qavg_pool16 and qsoftmax16: operators between int16 layers. See docs/arithmetic.md.

All zero points are 0, and all scales 128 times finer than those of int8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Piece, Quant, Signature, Tensor
from baretorch.ops.elementwise import Arithmetic, Sub
from baretorch.ops.helpers import cut, overlap
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params
from baretorch.ops.helpers.window import Axis, Padding, Pair, axes, cut_windows, outputs
from baretorch.ops.int8.arithmetic import multipliers
from baretorch.ops.int8.qbinary import QBinary, kernels
from baretorch.ops.int8.qpool import window_fields
from baretorch.ops.int8.rules import StaysFloat, Walk, fits_32_bits
from baretorch.ops.layout import Permute
from baretorch.ops.pool import MaxPool2d
from baretorch.ops.softmax import Softmax
from baretorch.targets.features import DSP, MVE

LOWEST, HIGHEST = -32768, 32767
LARGEST_FACTOR = (1 << 14) - 1  # two products with it and a rounding bit are below 2^31
SHIFTS = range(28, 8, -1)
LONGEST = 1 << 16  # numbers in a row of a softmax: a sum of more could leave 32 bits
RESULT = Quant((1 / 256,), (-128,))  # of a softmax as int8


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


@dataclass(frozen=True)
class _Pool16(Op):
    """x int16[N, H, W, C] -> one number for each window."""

    kernel: Pair
    stride: Pair
    padding: Padding = (0, 0, 0, 0)
    beyond: ClassVar[int]  # the value of padding

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        valid = x.dtype is DType.INT16 and len(x.shape) == 4
        need(valid, self, "the input is not an int16 image", inputs, "int16[N, H, W, C]")
        h, w = outputs(x.shape, self._windows())
        need(h > 0 and w > 0, self, "the output is empty", inputs, f"an image that holds the kernel {self.kernel}")
        return (Signature((x.shape[0], h, w, x.shape[3]), DType.INT16),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        top, bottom, left, right = self.padding
        padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=self.beyond)
        h, w = outputs(x.shape, self._windows())
        places = [
            padded[:, i :: self.stride[0], j :: self.stride[1]][:, :h, :w]
            for i in range(self.kernel[0])
            for j in range(self.kernel[1])
        ]
        return (self.pooled(np.stack(places)).astype(np.int16),)

    def pooled(self, places: Array) -> Array:
        """Return the result for all elements of a window, along the first axis."""
        raise NotImplementedError

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return cut_windows(self, self._windows(), inputs, axis, start, stop)

    def _windows(self) -> tuple[Axis, Axis]:
        return axes(self.kernel, self.stride, self.padding)


@dataclass(frozen=True)
class QMaxPool16(_Pool16, name="qmax_pool16", beyond=LOWEST):
    """The largest of each window."""

    def pooled(self, places: Array) -> Array:
        return np.asarray(places.max(axis=0))


@dataclass(frozen=True)
class QAvgPool16(_Pool16, name="qavg_pool16", beyond=0):
    """The sum over each window, requantized. Padding adds nothing."""

    multiplier: int = 1 << 30
    shift: int = 0

    def pooled(self, places: Array) -> Array:
        acc = places.sum(axis=0) << self.shift
        return np.asarray(np.clip((acc * self.multiplier + (1 << 31)) >> 32, LOWEST, HIGHEST))


@dataclass(frozen=True)
class QSoftmax16(Op, name="qsoftmax16"):
    """x int16[..., n] with this scale -> its softmax along the last axis, int16 with scale 1/32768."""

    scale: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(
            x.dtype is DType.INT16 and bool(x.shape) and 0 < x.shape[-1] <= LONGEST,
            self,
            "the input does not have the type and scale of an int16 softmax",
            inputs,
            f"int16, 1 to {LONGEST} along the last axis",
        )
        return (Signature(x.shape, DType.INT16, Quant((1 / 32768,), (0,))),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x = inputs[0].astype(np.int64)
        distance = x.max(axis=-1, keepdims=True) - x
        high, low = self.table().astype(np.int64).reshape(2, 256)
        e = (high[distance >> 8] * low[distance & 255] + (1 << 15)) >> 16
        inverse = 0xFFFFFFFF // e.sum(axis=-1, keepdims=True)
        return (np.minimum(((e * inverse >> 16) + 1) >> 1, HIGHEST).astype(np.int16),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return None if axis == len(y.shape) - 1 else cut.from_first(self, inputs, axis, start, stop)

    def table(self) -> Array:
        """Return e to the minus 256 i steps, and to the minus i steps, in 16 bits."""
        steps = np.arange(256) * self.scale
        return np.asarray(np.rint(65535 * np.exp(-np.concatenate([256 * steps, steps]))), np.uint16)


def add(walk: Walk, node: Node) -> None:
    """Add the int16 form of a sum or difference of two tensors."""
    op, (out,) = node.op, node.outputs
    assert isinstance(op, Arithmetic)
    a, b, y = (walk.finer_scale(n) for n in (*node.inputs, out))
    ratios = (a / y, (-1 if isinstance(op, Sub) else 1) * b / y)
    for shift in SHIFTS:
        first, second = (round(r * (1 << shift)) for r in ratios)
        if max(abs(first), abs(second)) <= LARGEST_FACTOR:
            lo, hi = (int(v) for v in np.clip(np.rint(np.array([op.lo, op.hi]) / y), LOWEST, HIGHEST))
            walk.wide[out] = walk.add_int16(QAdd16(first, second, shift, lo, hi), out, *map(walk.int16, node.inputs))
            return
    raise StaysFloat("its output's scale is too fine for those of its inputs")


def max_pool(walk: Walk, node: Node, op: MaxPool2d) -> None:
    """Add the int16 form of a max pool. Windows that reach beyond the padding, in `ceil_mode`, get more padding."""
    (x,), (out,) = node.inputs, node.outputs
    top, bottom, left, right = op.padding
    sides = zip(walk.graph[out].shape[1:3], op.kernel, op.stride, walk.graph[x].shape[1:3], strict=True)
    ends = [(n - 1) * stride + kernel - size for n, kernel, stride, size in sides]
    padding = (top, max(bottom, ends[0] - top), left, max(right, ends[1] - left))
    walk.wide[out] = walk.add_int16(QMaxPool16(op.kernel, op.stride, padding), out, walk.int16(x))


def average(walk: Walk, node: Node, kernel: Pair, divisor: int, stride: Pair, padding: Padding) -> QAvgPool16:
    """Return the average with the node's scales."""
    (x,), (out,) = node.inputs, node.outputs
    multiplier, shift = multipliers([walk.finer_scale(x) / (walk.finer_scale(out) * divisor)])
    fits_32_bits(-LOWEST * prod(kernel) << shift)
    return QAvgPool16(kernel, stride, padding, int(multiplier[0]), shift)


def softmax(walk: Walk, node: Node, op: Softmax) -> None:
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


def _max_params(call: Call[Any]) -> Params:
    return Params("bt_qmax_pool2d", window_fields(call))


def _avg_params(call: Call[QAvgPool16]) -> Params:
    own = {"x_zero": 0, "multiplier": call.op.multiplier, "shift": call.op.shift, "zero": 0}
    return Params("bt_qavg_pool2d", (*window_fields(call), *own.items()))


def _pairs(call: Call[Any]) -> bool:
    return call.x.shape[3] >= 2


def _rows(call: Call[QSoftmax16]) -> Params:
    return Params("bt_qsoftmax16", (("rows", prod(call.x.shape[:-1])), ("length", call.x.shape[-1])))


ADD = kernels("qadd16", "qwide/ref.c", {"mve": MVE, "dsp": DSP})


def _pool_kernels(name: str, params: Callable[[Call[Any]], Params]) -> tuple[Kernel[Any], ...]:
    ref = Kernel[Any](f"bt_{name}_ref", "qwide/ref.c", params, splits=cut.rows)
    dsp = replace(ref.for_cpu("dsp", DSP, fits=_pairs), source="qwide/pool_dsp.c")
    return (ref.for_cpu("mve", MVE), dsp, ref)


MAX = _pool_kernels("qmax_pool16", _max_params)
AVG = _pool_kernels("qavg_pool16", _avg_params)
_SOFTMAX = Kernel[QSoftmax16](
    "bt_qsoftmax16_ref",
    "qwide/ref.c",
    _rows,
    pack=lambda call: (Packed("table", call.op.table().view(np.int16)),),
    overlap=overlap.elementwise,
    splits=cut.rows,
)
SOFTMAX = (
    replace(_SOFTMAX.for_cpu("mve", MVE), source="qwide/softmax_mve.c"),
    replace(_SOFTMAX.for_cpu("dsp", DSP), source="qwide/softmax_dsp.c"),
    _SOFTMAX,
)
