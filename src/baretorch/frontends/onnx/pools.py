"""Rows of the ONNX table: pooling, of signals, images and volumes."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.pools import max_unpool as unpool
from baretorch.frontends.aten.pools import pool, with_indices
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Result
from baretorch.frontends.onnx.call import SMALL, OnnxCall, need_float, need_room
from baretorch.frontends.onnx.convs import convolve, windows
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.frontends.onnx.shapes import pad_constant
from baretorch.frontends.untrusted import too_large
from baretorch.frontends.windows import Windows
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Add, Mul, Pow
from baretorch.ops.functions import Abs, Sqrt
from baretorch.ops.helpers.window import Axis
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Amax, Mean, VectorNorm


def _windows(g: OnnxLowering, x: str, call: OnnxCall) -> Windows:
    sizes = g.shape(x)[2:]
    if not 1 <= len(sizes) <= 3:
        raise CompileError(f"{call.op} over {len(sizes)} dimensions is not supported", need="1 to 3")
    return windows(call, sizes, tuple(call.attribute("kernel_shape")))


def max_pool(g: OnnxLowering, x: str, *, ceil_mode: int = 0, storage_order: int = 0, call: OnnxCall) -> Result:
    """Lower a max pool. Bytes are pooled as float32, which represents them all. Indices count the elements of the whole
    input: those of an image or volume row by row, or column by column."""
    dtype, ceil = g[x].dtype, bool(ceil_mode)
    if dtype in SMALL:
        x = cast(g, x, DType.FLOAT32)
    need_float(g, call.op, x)
    w, sizes = _windows(g, x, call), g.shape(x)[2:]
    y = pool(g, x, w, lambda w: MaxPool2d(w.size, w.step, w.around, w.reach, ceil))
    if call.outputs == 1:
        return cast(g, y, dtype)
    y, *index = with_indices(g, x, y, w.taps(sizes, g.shape(y)[2:]), "F" if storage_order else "C")
    if not index:
        raise too_large(f"{call.op}: the table of the elements of all windows")
    batch, channels = g.shape(x)[:2]
    first = np.arange(batch * channels).reshape(batch, channels, *(1,) * w.dims) * prod(sizes)
    return cast(g, y, dtype), g.b.add(Add(), *index, g.b.const("first", first))


def max_unpool(g: OnnxLowering, x: str, index: str, output_shape: str | None = None, *, call: OnnxCall) -> str:
    """Put elements where the indices of a max pool say, in a result that its windows cover; all others are 0. It is
    padded at its ends if the output is larger."""
    w, outer = _windows(g, x, call), g.shape(x)[:2]
    each = zip(g.shape(x)[2:], w.kernel, w.strides, w.before, w.after, strict=True)
    size = (*outer, *((n - 1) * s + k - b - a for n, k, s, b, a in each))
    need_room(call.op, *size)
    x, index = (g.reshape(t, (g[t].count,)) for t in (x, index))
    want = g.ints(output_shape, f"{call.op}: output_shape") if output_shape else size
    after = [(0, n - have) for n, have in zip(want, size, strict=True)]
    return pad_constant(g, unpool(g, x, index, size), after, 0.0)


def average_pool(g: OnnxLowering, x: str, *, ceil_mode: int = 0, count_include_pad: int = 0, call: OnnxCall) -> str:
    need_float(g, call.op, x)
    w, ceil, padding = _windows(g, x, call), bool(ceil_mode), bool(count_include_pad)
    if any(d > 1 for d in w.dilations):
        return _dilated_mean(g, x, w, ceil, padding)
    return pool(g, x, w, lambda w: AvgPool2d(w.size, w.step, w.around, ceil, padding))


def _dilated_mean(g: OnnxLowering, x: str, w: Windows, ceil: bool, padding: bool) -> str:
    """Compute sums by a convolution with ones, times the reciprocal of each window's number of elements."""
    sums, counts = _dilated_sum(g, x, w, ceil, padding)
    return g.b.add(Mul(), sums, g.b.const("counts", (1.0 / counts).astype(np.float32)))


def _dilated_sum(g: OnnxLowering, x: str, w: Windows, ceil: bool, padding: bool = True) -> tuple[str, np.ndarray]:
    """Return the sum of each window and its number of elements: those inside, or with `padding` also those around."""
    channels, sizes = g.shape(x)[1], g.shape(x)[2:]
    after, counts = list(w.after), np.ones((), np.float64)
    for i, size in enumerate(sizes):
        axis = Axis(w.kernel[i], w.strides[i], w.before[i], w.after[i], w.dilations[i], ceil)
        if axis.outputs(size) < 1:
            raise CompileError(f"no window of {w.kernel} with dilations {w.dilations} fits", have=str(g[x]))
        need_room("a pool with dilations", axis.outputs(size), axis.kernel)
        starts = np.arange(axis.outputs(size)) * axis.stride - axis.before
        taps = starts[:, None] + np.arange(axis.kernel) * axis.dilation
        least, most = (-axis.before, size + axis.after) if padding else (0, size)
        counts = np.multiply.outer(counts, ((taps >= least) & (taps < most)).sum(axis=1))
        after[i] = max(int(taps[-1, -1]) + 1 - size, 0)  # a last window of ceil_mode may reach beyond the padding
    need_room("a pool with dilations", channels, *w.kernel)
    ones = g.b.const("ones", np.ones((channels, 1, *w.kernel), np.float32))
    return convolve(g, x, ones, None, replace(w, after=tuple(after)), channels), counts


def lp_pool(g: OnnxLowering, x: str, *, ceil_mode: int = 0, p: int = 2, call: OnnxCall) -> str:
    """Lower the root of the sum of powers; padding adds nothing."""
    need_float(g, call.op, x)
    w, ceil = _windows(g, x, call), bool(ceil_mode)
    if p == 2:
        powers = g.b.add(Mul(), x, x)
    else:
        size = g.b.add(Abs(), x)
        powers = size if p == 1 else g.b.add(Pow(), size, g.operand(float(p), x))
    if any(d > 1 for d in w.dilations):
        y, _ = _dilated_sum(g, powers, w, ceil)
    else:
        y = pool(g, powers, w, lambda w: AvgPool2d(w.size, w.step, w.around, ceil, divisor=1))
    if p == 2:
        return g.b.add(Sqrt(), y)
    return y if p == 1 else g.b.add(Pow(), y, g.operand(1.0 / p, x))


def _all(g: OnnxLowering, x: str) -> tuple[int, ...]:
    return tuple(range(2, len(g.shape(x))))


ROWS: dict[str, OnnxRow] = {
    "MaxPool": row(max_pool),
    "MaxUnpool": row(max_unpool),
    "AveragePool": row(average_pool),
    "LpPool": row(lp_pool),
    "GlobalMaxPool": row(lambda g, x: g.b.add(Amax(_all(g, x), True), x)),
    "GlobalAveragePool": row(lambda g, x: g.b.add(Mean(_all(g, x), True), x)),
    "GlobalLpPool": row(lambda g, x, *, p=2: g.b.add(VectorNorm(_all(g, x), True, float(p)), x)),
}
