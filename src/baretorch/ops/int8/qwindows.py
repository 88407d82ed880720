"""qavg_windows and qmax_windows: int8 pools whose windows differ in size, as those of adaptive pools and at borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array, DType, Node, Op, Piece, Shape, Signature, Span, Tensor
from baretorch.ops.helpers import cut
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, data_of, fields_of, has_constants
from baretorch.ops.helpers.window import Padding, Pair, image_params
from baretorch.ops.int8.arithmetic import LOWEST, multipliers, requantize
from baretorch.ops.int8.qpool import QAvgPool2d, QAvgPool16, QMaxPool16
from baretorch.ops.int8.rules import StaysFloat, Walk, fits_32_bits
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.pool import AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Amax, Mean, Reduction

Spans = tuple[tuple[int, int], ...]  # start and stop of each window along a side


@dataclass(frozen=True)
class QMaxWindows(Op, name="qmax_windows"):
    """x int8[N, H, W, C] -> the largest of the windows rows[i] x columns[j]."""

    rows: Spans
    columns: Spans

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        return (Signature(_shape(self, inputs), DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        pooled = [x[:, a:b, c:d].max(axis=(1, 2)) for a, b in self.rows for c, d in self.columns]
        return (np.stack(pooled, 1).reshape(len(x), len(self.rows), len(self.columns), -1),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        return _cut(self, axis, start, stop)


@dataclass(frozen=True)
class QAvgWindows(Op, name="qavg_windows"):
    """x int8[N, H, W, C], multiplier int32[len(rows), len(columns)] -> the sum of x - x_zero over the windows rows[i] x
    columns[j], requantized."""

    rows: Spans
    columns: Spans
    x_zero: int
    shift: int
    zero: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        shape = _shape(self, inputs)
        multiplier = inputs[1]
        valid = (multiplier.dtype, multiplier.shape) == (DType.INT32, shape[1:3])
        need(valid, self, "the multipliers do not fit", inputs, f"int32{list(shape[1:3])}")
        return (Signature(shape, DType.INT8),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, multiplier = inputs[0].astype(np.int64) - self.x_zero, inputs[1]
        sums = [x[:, a:b, c:d].sum(axis=(1, 2)) for a, b in self.rows for c, d in self.columns]
        acc = np.stack(sums, 1).reshape(len(x), *multiplier.shape, -1)
        return (requantize(acc, multiplier[..., np.newaxis], self.shift, self.zero, -128, 127),)

    def cut(self, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece | None:
        piece = _cut(self, axis, start, stop)
        return piece and replace(piece, reads=(*piece.reads, Span(0, start, stop) if axis else None))


def _shape(op: QMaxWindows | QAvgWindows, inputs: Sequence[Tensor]) -> Shape:
    x = inputs[0]
    need(x.dtype is DType.INT8 and len(x.shape) == 4, op, "the input is not an int8 image", inputs, "int8[N, H, W, C]")
    for spans, size in zip((op.rows, op.columns), x.shape[1:3], strict=True):
        inside = all(0 <= start < stop <= size for start, stop in spans)
        need(inside, op, "a window is empty or leaves the image", inputs, "windows inside of the image")
    return (x.shape[0], len(op.rows), len(op.columns), x.shape[3])


def max_pool(walk: Walk, node: Node) -> None:
    assert isinstance(node.op, MaxPool2d)
    if node.op.dilation != (1, 1):
        raise StaysFloat("a max pool with dilation has no int8 form")
    noted = walk.quant(node.outputs[0])
    if noted is not None and noted.bits == 16:
        _max_pool16(walk, node, node.op)
        return
    walk.same(node, node.op)


def _max_pool16(walk: Walk, node: Node, op: MaxPool2d) -> None:
    """Add the int16 form of a max pool. Windows that reach beyond the padding, in `ceil_mode`, get more padding."""
    (x,), (out,) = node.inputs, node.outputs
    top, bottom, left, right = op.padding
    sides = zip(walk.graph[out].shape[1:3], op.kernel, op.stride, walk.graph[x].shape[1:3], strict=True)
    ends = [(n - 1) * stride + kernel - size for n, kernel, stride, size in sides]
    padding = (top, max(bottom, ends[0] - top), left, max(right, ends[1] - left))
    walk.wide[out] = walk.add_int16(QMaxPool16(op.kernel, op.stride, padding), out, walk.int16(x))


def avg_pool(walk: Walk, node: Node) -> None:
    op = node.op
    assert isinstance(op, AvgPool2d)
    size, out = walk.graph[node.inputs[0]].shape[1:3], walk.graph[node.outputs[0]].shape[1:3]
    padded = any(op.padding)
    if op.kernel == size and not padded:
        _over(walk, node, (1, 2), _average(walk, node, (1, prod(size)), op.divisor or prod(size)))
        return
    sides = list(zip(out, op.kernel, op.stride, size, op.padding[::2], op.padding[1::2], strict=True))
    cut = any((n - 1) * stride + kernel > s + before + after for n, kernel, stride, s, before, after in sides)
    if not cut and (op.count_include_pad or op.divisor or not padded):
        pool = _average(walk, node, op.kernel, op.divisor or prod(op.kernel), op.stride, op.padding)
        if isinstance(pool, QAvgPool16):
            walk.wide[node.outputs[0]] = walk.add_int16(pool, node.outputs[0], walk.int16(node.inputs[0]))
        else:
            walk.emit(node, pool, walk.int8(node.inputs[0]))
        return
    spans, lengths = [], []
    for n, kernel, stride, s, before, after in sides:
        whole = [(i * stride - before, min(i * stride - before + kernel, s + after)) for i in range(n)]
        spans.append(tuple((max(start, 0), min(stop, s)) for start, stop in whole))
        lengths.append([stop - start for start, stop in (whole if op.count_include_pad else spans[-1])])
    _windows(walk, node, spans[0], spans[1], [op.divisor or h * w for h in lengths[0] for w in lengths[1]])


def adaptive_avg_pool(walk: Walk, node: Node) -> None:
    assert isinstance(node.op, AdaptiveAvgPool2d)
    rows, columns = _cover(walk, node, node.op.size)
    _windows(walk, node, rows, columns, [(b - a) * (d - c) for a, b in rows for c, d in columns])


def adaptive_max_pool(walk: Walk, node: Node) -> None:
    assert isinstance(node.op, AdaptiveMaxPool2d)
    walk.same(node, QMaxWindows(*_cover(walk, node, node.op.size)))


def _cover(walk: Walk, node: Node, size: Pair) -> tuple[Spans, Spans]:
    """Return `size` windows, which cover the image."""
    rows, columns = (
        tuple((i * s // n, -(-(i + 1) * s // n)) for i in range(n))
        for s, n in zip(walk.graph[node.inputs[0]].shape[1:3], size, strict=True)
    )
    return rows, columns


def _windows(walk: Walk, node: Node, rows: Spans, columns: Spans, divisors: list[int]) -> None:
    """Add averages that divide by different numbers."""
    if walk.scale(node.outputs[0]).bits == 16:
        raise StaysFloat("a pool whose windows differ in size has no int16 form")
    x, y = walk.scale(node.inputs[0]), walk.scale(node.outputs[0])
    counts = [(b - a) * (d - c) if b > a and d > c else 0 for a, b in rows for c, d in columns]
    if min(counts) == 0:
        raise StaysFloat("a window is completely in its padding")
    multiplier, shift = multipliers([x.scale[0] / (y.scale[0] * n) for n in divisors])
    fits_32_bits(255 * max(counts) << shift)
    constant = walk.constant(walk.graph[node.outputs[0]], "multiplier", multiplier.reshape(len(rows), len(columns)))
    made = QAvgWindows(rows, columns, x.zero_point[0], shift, y.zero_point[0])
    walk.emit(node, made, walk.int8(node.inputs[0]), constant)


def reduction(walk: Walk, node: Node) -> None:
    """Add the int8 form of a sum, mean or maximum."""
    op = node.op
    assert isinstance(op, Reduction)
    if not op.axes:
        raise StaysFloat("it reduces no axis")
    count = prod(walk.graph[node.inputs[0]].shape[a] for a in op.axes)
    if isinstance(op, Amax):
        walk.found[node.outputs[0]] = walk.scale(node.inputs[0])
        pool: Op = MaxPool2d((1, count), (1, 1))
    else:
        pool = _average(walk, node, (1, count), count if isinstance(op, Mean) else 1)
    _over(walk, node, op.axes, pool)


def _over(walk: Walk, node: Node, axes: tuple[int, ...], pool: Op) -> None:
    """Add a pool of an image whose only row consists of these axes, which are moved next to each other."""
    (x,), (out,) = node.inputs, node.outputs
    shape = walk.graph[x].shape
    first, last = min(axes), max(axes)
    wide = isinstance(pool, QAvgPool16)
    view = walk.add_int16 if wide else walk.view
    moved = walk.int16(x) if wide else walk.int8(x)
    if last - first + 1 != len(axes):
        order = (*(i for i in range(len(shape)) if i not in axes), *sorted(axes))
        moved = view(Permute(order), x, moved)
        shape = tuple(shape[i] for i in order)
        first, last = len(shape) - len(axes), len(shape) - 1
    outer, count, inner = prod(shape[:first]), prod(shape[first : last + 1]), prod(shape[last + 1 :])
    image = view(Reshape((outer, 1, count, inner)), x, moved)
    if wide:
        walk.wide[out] = walk.add_int16(Reshape(walk.graph[out].shape), out, walk.add_int16(pool, out, image))
        return
    pooled = walk.add(pool, out, (outer, 1, 1, inner), walk.quant(out), image)
    walk.emit(node, Reshape(walk.graph[out].shape), pooled)


def _average(
    walk: Walk, node: Node, kernel: Pair, divisor: int, stride: Pair = (1, 1), padding: Padding = (0, 0, 0, 0)
) -> QAvgPool2d | QAvgPool16:
    """Return the average with the node's scales."""
    x, y = walk.scale(node.inputs[0]), walk.scale(node.outputs[0])
    if walk.graph[node.inputs[0]].count == 0:
        raise StaysFloat("it has no input")
    if y.bits == 16:
        s_x, s_y = walk.finer_scale(node.inputs[0]), walk.finer_scale(node.outputs[0])
        multiplier, shift = multipliers([s_x / (s_y * divisor)])
        fits_32_bits(-LOWEST * prod(kernel) << shift)
        return QAvgPool16(kernel, stride, padding, int(multiplier[0]), shift)
    multiplier, shift = multipliers([x.scale[0] / (y.scale[0] * divisor)])
    fits_32_bits(255 * prod(kernel) << shift)
    return QAvgPool2d(kernel, stride, x.zero_point[0], int(multiplier[0]), shift, y.zero_point[0], padding)


def _cut(op: QMaxWindows | QAvgWindows, axis: int, start: int, stop: int) -> Piece | None:
    """Return a piece of images or of rows."""
    if axis == 0:
        return Piece(op, (Span(0, start, stop),))
    if axis > 1:
        return None
    spans = op.rows[start:stop]
    first, behind = min(a for a, _ in spans), max(b for _, b in spans)
    return Piece(replace(op, rows=tuple((a - first, b - first) for a, b in spans)), (Span(1, first, behind),))


def _params(call: Call[QAvgWindows]) -> Params:
    sizes = image_params(call.x.shape, call.y.shape)
    return Params("bt_qavg_windows", (*sizes, *fields_of(call.op, "x_zero", "shift", "zero")))


def _spans(call: Call[Any]) -> tuple[Packed, ...]:
    return (
        Packed("rows", np.array(call.op.rows, np.int16)),
        Packed("columns", np.array(call.op.columns, np.int16)),
    )


def _pack(call: Call[QAvgWindows]) -> tuple[Packed, ...]:
    return (*_spans(call), Packed("multiplier", data_of(call.inputs, 1)))


AVG: tuple[Kernel[QAvgWindows], ...] = (
    Kernel(
        "bt_qavg_windows_ref",
        "qwindows/ref.c",
        _params,
        fits=has_constants,
        pack=_pack,
        splits=cut.rows,
    ),
)
MAX: tuple[Kernel[QMaxWindows], ...] = (
    Kernel(
        "bt_qmax_windows_ref",
        "qwindows/ref.c",
        lambda call: Params("bt_qmax_windows", image_params(call.x.shape, call.y.shape)),
        pack=_spans,
        splits=cut.rows,
    ),
)
