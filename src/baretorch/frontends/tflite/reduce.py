"""Rows of the TFLite table: reductions, and operators along an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Result, known_value
from baretorch.frontends.tflite.call import Field, TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow, graph_type_of
from baretorch.ops.functions import Neg
from baretorch.ops.layout import Flip, Pad
from baretorch.ops.logic import Cast
from baretorch.ops.move import Slice
from baretorch.ops.reduce import AllOf, Amax, Amin, AnyOf, Mean, Prod, Reduction, Sum
from baretorch.ops.scan import ArgMax, ArgMin, CumSum, TopK

KEEP_DIMS = Field(0, "B")
EXCLUSIVE, REVERSE = Field(0, "B"), Field(1, "B")


def axes_of(g: TfliteLowering, call: TfliteCall, i: int) -> tuple[int, ...]:
    """Return the axes that an input names, in order."""
    rank = len(g.shape(call.x()))
    axes = {g.axis(call.x(), a) for a in g.ints(call.x(i), f"the axes of {call.name}")}
    if any(not 0 <= a < rank for a in axes):
        raise CompileError(f"{call.name}: there is no axis {max(axes, key=abs)} of {rank}")
    return tuple(sorted(axes))


def axis_of(g: TfliteLowering, call: TfliteCall, i: int) -> int:
    axes = axes_of(g, call, i)
    if len(axes) != 1:
        raise CompileError(f"{call.name}: {len(axes)} axes instead of one")
    return axes[0]


def reduction(op: type[Reduction]) -> TfliteRow:
    def build(g: TfliteLowering, call: TfliteCall) -> str:
        axes = axes_of(g, call, 1)
        if not axes:
            return call.x()
        return cast_to_file(g, call, g.b.add(op(axes, bool(call.option(KEEP_DIMS))), call.x()))

    return TfliteRow(build, (op,))


def product(g: TfliteLowering, call: TfliteCall) -> Result:
    """Lower a product; of integers only if they are constant, such as sizes that Keras multiplies for a reshape."""
    axes, known, keep = axes_of(g, call, 1), known_value(g, call.x()), bool(call.option(KEEP_DIMS))
    if known is not None and known.dtype.kind == "i":
        return g.b.const("product", np.prod(known, axis=axes, keepdims=keep, dtype=known.dtype))
    return reduction(Prod).build(g, call)


def smallest(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a minimum. In int8 it is the largest of -x, which is stored as -1 - q without loss."""
    axes, x, quant = axes_of(g, call, 1), call.x(), g[call.x()].quant
    keep = bool(call.option(KEEP_DIMS))
    if quant is None or not axes:
        return cast_to_file(g, call, g.b.add(Amin(axes, keep), x)) if axes else x
    turned = replace(quant, zero_point=(-1 - quant.zero_point[0],))
    most = g.note_scale(g.b.add(Amax(axes, keep), g.note_scale(g.b.add(Neg(), x), turned)), turned)
    return g.b.add(Neg(), most)


def extreme(op: type[ArgMax]) -> TfliteRow:
    def build(g: TfliteLowering, call: TfliteCall) -> str:
        return cast_to_file(g, call, g.b.add(op(axis_of(g, call, 1), False), call.x()))

    return TfliteRow(build, (op,))


def cumsum(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a cumulative sum. `exclusive` leaves each element itself out; `reverse` goes from the last to the first."""
    axis, x = axis_of(g, call, 1), call.x()
    length, rank = g.shape(x)[axis], len(g.shape(x))
    if call.option(REVERSE):
        x = g.b.add(Flip((axis,)), x)
    if call.option(EXCLUSIVE) and length:
        x = g.b.add(Pad(tuple((1, 0) if d == axis else (0, 0) for d in range(rank)), 0.0), x)
        x = g.b.add(Slice(axis, 0, length), x)
    y = cast_to_file(g, call, g.b.add(CumSum(axis), x))
    return g.b.add(Flip((axis,)), y) if call.option(REVERSE) else y


def topk(g: TfliteLowering, call: TfliteCall) -> tuple[str, ...]:
    (k,) = g.ints(call.x(1), "the k of TOPK_V2")
    values, indices = g.b.add_many(TopK(k, len(g.shape(call.x())) - 1), call.x())
    return values, g.b.add(Cast("int32"), indices)


def cast_to_file(g: TfliteLowering, call: TfliteCall, y: str) -> str:
    """Cast to the file's type: sums and indices of Baretorch are int64."""
    to = g.type_of(call.y)
    whole = np.issubdtype(to.numpy, np.integer) and g[y].dtype is not to
    return g.b.add(Cast(graph_type_of(call.y).label), y) if whole else y


ROWS: dict[str, TfliteRow] = {
    "MEAN": reduction(Mean),
    "SUM": reduction(Sum),
    "REDUCE_MAX": reduction(Amax),
    "REDUCE_MIN": TfliteRow(smallest, (Amin, Amax)),
    "REDUCE_PROD": TfliteRow(product, (Prod,)),
    "REDUCE_ANY": reduction(AnyOf),
    "REDUCE_ALL": reduction(AllOf),
    "ARG_MAX": extreme(ArgMax),
    "ARG_MIN": extreme(ArgMin),
    "CUMSUM": TfliteRow(cumsum, (CumSum,)),
    "TOPK_V2": TfliteRow(topk, (TopK,)),
}
