"""Rows of the ONNX table: reductions, and operators along one axis."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.moves import flip
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Ints, Lowering, Result
from baretorch.frontends.onnx.call import OnnxCall, need_float, widen
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.ir.graph import DType
from baretorch.ops import reduce as reduction
from baretorch.ops.elementwise import Mul, Sub
from baretorch.ops.functions import Log
from baretorch.ops.layout import Pad
from baretorch.ops.reduce import AllOf, Amax, Amin, AnyOf, LogSumExp, Mean, Prod, Reduction, Sum, VectorNorm
from baretorch.ops.scan import ArgMax, ArgMin, CumSum, TopK

Reducer = Callable[[Lowering, str, tuple[int, ...], bool], str]
LONGEST_PRODUCT = 64  # elements of a CumProd, each of which takes a multiplication


def reduce_axes(what: Reducer) -> OnnxRow:
    """Make a row for a reduction over `axes`, an attribute in older versions and an input in newer ones; none means
    all, or with noop_with_empty_axes nothing."""

    def build(
        g: OnnxLowering,
        x: str,
        some: str | None = None,
        *,
        axes: Ints = (),
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
        call: OnnxCall,
    ) -> str:
        if some is not None:
            axes = g.ints(some, f"{call.op}: axes")
        if not axes and noop_with_empty_axes:
            return what(g, x, (), True)
        every = tuple(sorted({g.axis(x, a) for a in axes})) or tuple(range(len(g.shape(x))))
        return what(g, x, every, bool(keepdims))

    return row(build)


def plain(op: Callable[[tuple[int, ...], bool], Reduction]) -> Reducer:
    """Reduce float32, or integers that are widened and converted back."""

    def build(g: Lowering, x: str, axes: tuple[int, ...], keep: bool) -> str:
        if not axes:
            return x
        return cast(g, g.b.add(op(axes, keep), widen(g, x)), g[x].dtype)

    return build


def extreme(op: type[Amax | Amin], truths: type[Reduction]) -> Reducer:
    """Reduce with max or min. The largest of booleans is whether any is true, the smallest whether all are. For no
    numbers, it is the smallest or largest number of the type."""

    def build(g: Lowering, x: str, axes: tuple[int, ...], keep: bool) -> str:
        dtype = g[x].dtype
        if dtype is not DType.BOOL and not all(g.shape(x)[a] for a in axes):
            last = inf if dtype is DType.FLOAT32 else np.iinfo(dtype.numpy).max
            first = -inf if dtype is DType.FLOAT32 else np.iinfo(dtype.numpy).min
            shape = reduction.reduce_shape(g.shape(x), axes, keep)
            return g.b.const("none", np.full(shape, first if op is Amax else last, dtype.numpy))
        return plain(truths if g[x].dtype is DType.BOOL else op)(g, x, axes, keep)

    return build


def floats(op: Callable[[tuple[int, ...], bool], Reduction]) -> Reducer:
    """Reduce float32 only; over no axes, compute it for each element separately."""

    def build(g: Lowering, x: str, axes: tuple[int, ...], keep: bool) -> str:
        need_float(g, op((), True).name, x)
        return g.b.add(op(axes, keep), x)

    return build


def sum_square(g: Lowering, x: str, axes: tuple[int, ...], keep: bool) -> str:
    square = g.b.add(Mul(), widen(g, x), widen(g, x))
    return cast(g, plain(Sum)(g, square, axes, keep), g[x].dtype)


def log_sum(g: Lowering, x: str, axes: tuple[int, ...], keep: bool) -> str:
    need_float(g, "ReduceLogSum", x)
    return g.b.add(Log(), plain(Sum)(g, x, axes, keep))


def norm(order: float) -> Reducer:
    return floats(lambda axes, keep: VectorNorm(axes, keep, order))


# --- along one axis -----------------------------------------------------------------------------------------


def arg(op: type[ArgMax]) -> OnnxRow:
    """Make a row for argmax or argmin. The last of equal elements is the first of the reversed axis."""

    def build(g: OnnxLowering, x: str, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> str:
        x, at, keep = widen(g, x), g.axis(x, axis), bool(keepdims)
        if not select_last_index:
            return g.b.add(op(at, keep), x)
        found = g.b.add(op(at, keep), flip(g, x, (at,)))
        return g.b.add(Sub(), g.b.const("last", np.array(g.shape(x)[at] - 1, np.int64)), found)

    return row(build)


def top_k(g: OnnxLowering, x: str, count: str, *, axis: int = -1, largest: int = 1) -> Result:
    """Lower TopK; the result is always sorted."""
    (k,) = g.ints(count, "TopK: k")
    return g.b.add_many(TopK(k, g.axis(x, axis), bool(largest)), x)


def cumulative(what: Callable[[Lowering, str, int], str], nothing: float) -> OnnxRow:
    """Make a row for a cumulative operator: from the front, or with `reverse` from the back; with `exclusive` each
    element itself is left out."""

    def build(g: OnnxLowering, x: str, along: str, *, exclusive: int = 0, reverse: int = 0, call: OnnxCall) -> str:
        axis, dtype = g.axis(x, g.ints(along, f"{call.op}: axis")[0]), g[x].dtype
        y = flip(g, x, (axis,)) if reverse else x
        if exclusive:
            shape = g.shape(x)
            some = shapes.slice_(g, y, axis, 0, shape[axis] - 1)
            y = g.b.add(Pad(tuple((int(i == axis), 0) for i in range(len(shape))), nothing), some)
        made = cast(g, what(g, widen(g, y), axis), dtype)
        return flip(g, made, (axis,)) if reverse else made

    return row(build)


def cumprod(g: Lowering, x: str, axis: int) -> str:
    """Multiply elements one after the other."""
    length = g.shape(x)[axis]
    if length > LONGEST_PRODUCT:
        raise CompileError(f"CumProd over {length} elements is not supported", need=f"at most {LONGEST_PRODUCT}")
    parts = list(shapes.split(g, x, 1, axis))
    for i in range(1, length):
        parts[i] = g.b.add(Mul(), parts[i - 1], parts[i])
    return shapes.cat(g, parts, axis) if parts else x


ROWS: dict[str, OnnxRow] = {
    "ReduceSum": reduce_axes(plain(Sum)),
    "ReduceMean": reduce_axes(floats(Mean)),
    "ReduceProd": reduce_axes(floats(Prod)),
    "ReduceMax": reduce_axes(extreme(Amax, AnyOf)),
    "ReduceMin": reduce_axes(extreme(Amin, AllOf)),
    "ReduceL1": reduce_axes(norm(1.0)),
    "ReduceL2": reduce_axes(norm(2.0)),
    "ReduceLogSum": reduce_axes(log_sum),
    "ReduceLogSumExp": reduce_axes(floats(LogSumExp)),
    "ReduceSumSquare": reduce_axes(sum_square),
    "ArgMax": arg(ArgMax),
    "ArgMin": arg(ArgMin),
    "TopK": row(top_k),
    "CumSum": cumulative(lambda g, x, axis: g.b.add(CumSum(axis), x), 0.0),
    "CumProd": cumulative(cumprod, 1.0),
}
