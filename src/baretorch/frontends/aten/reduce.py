"""Rows of the ATen table: reductions, operators along one axis, and distances.

Several overloads share a row; the number and kind of their arguments selects one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.frontends.aten import elementwise, shapes
from baretorch.frontends.aten.index import expand_to
from baretorch.frontends.aten.promotion import to_float
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Build, Ints, Lowering, Result, Scalar
from baretorch.ir.graph import Op
from baretorch.ops.cdist import Cdist
from baretorch.ops.elementwise import Maximum, Minimum
from baretorch.ops.reduce import AllOf, Amax, Amin, AnyOf, LogSumExp, Mean, Prod, Reduction, Std, Sum, Var, VectorNorm
from baretorch.ops.scan import ArgMax, ArgMin, Chosen, CumSum, KthValue, Median, Mode, TopK
from baretorch.ops.softmax import LogSoftmax, Softmax

Axes = int | Ints | None

# --- reductions ---------------------------------------------------------------------------------------------


def axes_of(g: Lowering, x: str, axes: Axes) -> tuple[int, ...]:
    """Return the axes counted from the front; none means all."""
    rank = len(g.shape(x))
    some = (axes,) if isinstance(axes, int) else tuple(axes or ()) or range(rank)
    return tuple(sorted(g.axis(x, a) for a in some)) if rank else ()


def summary(op: Callable[[tuple[int, ...], bool], Reduction]) -> Callable[..., str]:
    """Return the row of sum, mean or prod: (dtype) for all axes, or (axes, keepdim, dtype)."""

    def build(g: Lowering, x: str, *rest: Any) -> str:
        axes, keepdim, dtype = rest if len(rest) == 3 else (None, False, *rest)
        x = elementwise.to(g, x, dtype)
        return g.b.add(op(axes_of(g, x, axes), keepdim), x)

    return build


sum_, mean, prod = summary(Sum), summary(Mean), summary(Prod)


def reduction(op: Callable[[tuple[int, ...], bool], Reduction]) -> Callable[..., str]:
    def build(g: Lowering, x: str, axes: Axes = None, keepdim: bool = False) -> str:
        return g.b.add(op(axes_of(g, x, axes), keepdim), x)

    return build


amax, amin, any_, all_, logsumexp = map(reduction, (Amax, Amin, AnyOf, AllOf, LogSumExp))


def aminmax(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return amin(g, x, axis, keepdim), amax(g, x, axis, keepdim)


def spread(op: Callable[[tuple[int, ...], bool, float], Reduction], mean: bool = False) -> Build:
    """Return the row of var or std, followed by the `mean` if it is a result too: (unbiased), (axes, unbiased, keepdim)
    or (axes, correction, keepdim)."""

    def build(g: Lowering, x: str, *rest: Any) -> Result:
        some, correction, keepdim = rest if len(rest) == 3 else (None, *rest, False)
        axes = axes_of(g, x, some)
        y = g.b.add(op(axes, keepdim, 1.0 if correction is None else float(correction)), x)
        return (y, g.b.add(Mean(axes, keepdim), x)) if mean else y

    return build


def vector_norm(
    g: Lowering, x: str, order: Scalar | None = 2, axes: Axes = None, keepdim: bool = False, dtype: str | None = None
) -> str:
    x = elementwise.to(g, x, dtype)
    return g.b.add(VectorNorm(axes_of(g, x, axes), keepdim, 2.0 if order is None else float(order)), x)


def norm(g: Lowering, x: str, order: Scalar | None = 2, *rest: Any) -> str:
    """Lower the older form of norm: (dtype) for all axes, or (axes, keepdim, dtype)."""
    return vector_norm(g, x, order, None, False, *rest) if len(rest) == 1 else vector_norm(g, x, order, *rest)


# --- along one axis -----------------------------------------------------------------------------------------


def arg(op: type[ArgMax]) -> Callable[..., str]:
    """Return the row of argmax or argmin; without an axis, it is the index into all elements in a row."""

    def build(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> str:
        if axis is not None and g.shape(x):
            return g.b.add(op(g.axis(x, axis), keepdim), x)
        flat = g.b.add(op(0, False), shapes.reshape(g, x, (-1,)))
        return shapes.reshape(g, flat, (1,) * len(g.shape(x))) if keepdim else flat

    return build


argmax, argmin = arg(ArgMax), arg(ArgMin)


def extreme(value: Callable[..., str], index: Callable[..., str], of_two: Op) -> Build:
    """Return the row of max or min: () over all axes; (axis, keepdim) for values and indices, of which unused ones
    vanish; or (other)."""

    def build(g: Lowering, x: str, *rest: Any) -> Result:
        if rest and isinstance(rest[0], str):
            return g.b.add(of_two, x, rest[0])
        return (value(g, x, *rest), index(g, x, *rest)) if rest else value(g, x)

    return build


def cumsum(g: Lowering, x: str, axis: int, dtype: str | None = None) -> str:
    x = elementwise.to(g, x, dtype)
    return g.b.add(CumSum(g.axis(x, axis)), x) if g.shape(x) else x


def topk(g: Lowering, x: str, k: int, axis: int = -1, largest: bool = True, ordered: bool = True) -> Result:
    return g.b.add_many(TopK(k, g.axis(x, axis), largest), x)


def sort(g: Lowering, x: str, *rest: Any) -> Result:
    """Lower sort: (axis, descending) or (stable, axis, descending); it is always stable."""
    axis, descending = rest[-2:]
    at = g.axis(x, axis)
    return g.b.add_many(TopK(g.shape(x)[at], at, descending), x)


def argsort(g: Lowering, x: str, *rest: Any) -> str:
    return sort(g, x, *rest)[1]


def softmax(g: Lowering, x: str, axis: int, dtype: str | bool | None = None) -> str:
    x = elementwise.to(g, x, dtype)
    return g.b.add(Softmax(g.axis(x, axis)), x)


def log_softmax(g: Lowering, x: str, axis: int, dtype: str | bool | None = None) -> str:
    x = elementwise.to(g, x, dtype)
    return g.b.add(LogSoftmax(g.axis(x, axis)), x)


# --- elements selected by the order of the values, and distances between rows -------------------------------


def middle(quiet: bool) -> Build:
    """Return the lowering of median, or of nanmedian if `quiet`. Without an axis, reduce all elements and
    return only the value."""

    def build(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
        if axis is None:
            return g.b.add_many(Median(0, quiet), g.reshape(x, (g[x].count,)))[0]
        return choose(g, Median(g.axis(x, axis), quiet), x, keepdim)

    return build


def kthvalue(g: Lowering, x: str, k: int, axis: int = -1, keepdim: bool = False) -> Result:
    return choose(g, KthValue(g.axis(x, axis), k - 1), x, keepdim)


def mode(g: Lowering, x: str, axis: int = -1, keepdim: bool = False) -> Result:
    return choose(g, Mode(g.axis(x, axis)), x, keepdim)


def choose(g: Lowering, op: Chosen, x: str, keepdim: bool) -> Result:
    """Return values and indices. A single number is a row of one."""
    shape = g.shape(x)
    kept = (*shape[: op.axis], 1, *shape[op.axis + 1 :]) if shape else ()
    if not shape:
        op, x = replace(op, axis=0), g.reshape(x, (1,))
    made = g.b.add_many(op, x)
    return tuple(g.reshape(y, kept) for y in made) if keepdim else made


def cdist(g: Lowering, a: str, b: str, order: Scalar = 2.0, *_: object) -> str:
    """Lower cdist exactly. For many rows, PyTorch may use the matrix product, which loses digits where rows are
    near."""
    a, b = to_float(g, a, b)
    batch = np.broadcast_shapes(g.shape(a)[:-2], g.shape(b)[:-2])
    a, b = (expand_to(g, t, (*batch, *g.shape(t)[-2:])) for t in (a, b))
    return g.b.add(Cdist(float(order)), a, b)


ROWS: dict[str, AtenRow] = {
    **rows("sum", sum_, Sum),
    **rows("mean", mean, Mean),
    **rows("prod", prod, Prod),
    **rows("amax", amax, Amax),
    **rows("amin", amin, Amin),
    **rows("aminmax", aminmax, Amax, Amin),
    **rows("max", extreme(amax, argmax, Maximum()), Amax, ArgMax, Maximum),
    **rows("min", extreme(amin, argmin, Minimum()), Amin, ArgMin, Minimum),
    **rows("any", any_, AnyOf),
    **rows("all", all_, AllOf),
    **rows("var", spread(Var), Var),
    **rows("std", spread(Std), Std),
    **rows("var_mean", spread(Var, mean=True), Mean, Var),
    **rows("std_mean", spread(Std, mean=True), Mean, Std),
    **rows("logsumexp", logsumexp, LogSumExp),
    **rows("linalg_vector_norm", vector_norm, VectorNorm),
    **rows("norm", norm, VectorNorm),
    **rows("argmax", argmax, ArgMax),
    **rows("argmin", argmin, ArgMin),
    **rows("cumsum", cumsum, CumSum),
    **rows("topk", topk, TopK),
    **rows("sort", sort, TopK),
    **rows("argsort", argsort, TopK),
    **rows("softmax _softmax", softmax, Softmax),
    **rows("log_softmax _log_softmax", log_softmax, LogSoftmax),
    **rows("kthvalue", kthvalue, KthValue),
    **rows("median", middle(False), Median),
    **rows("nanmedian", middle(True), Median),
    **rows("mode", mode, Mode),
    **rows("cdist _cdist_forward", cdist, Cdist),
}
