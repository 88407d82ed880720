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
from baretorch.frontends.lowering import Ints, Lowering, Result, Scalar
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


def summary(g: Lowering, op: Callable[[tuple[int, ...], bool], Reduction], x: str, *rest: Any) -> str:
    """Lower sum, mean and prod: (dtype) for all axes, or (axes, keepdim, dtype)."""
    axes, keepdim, dtype = rest if len(rest) == 3 else (None, False, *rest)
    x = elementwise.to(g, x, dtype)
    return g.b.add(op(axes_of(g, x, axes), keepdim), x)


def sum_(g: Lowering, x: str, *rest: Any) -> str:
    return summary(g, Sum, x, *rest)


def mean(g: Lowering, x: str, *rest: Any) -> str:
    return summary(g, Mean, x, *rest)


def prod(g: Lowering, x: str, *rest: Any) -> str:
    return summary(g, Prod, x, *rest)


def amax(g: Lowering, x: str, axes: Axes = None, keepdim: bool = False) -> str:
    return g.b.add(Amax(axes_of(g, x, axes), keepdim), x)


def amin(g: Lowering, x: str, axes: Axes = None, keepdim: bool = False) -> str:
    return g.b.add(Amin(axes_of(g, x, axes), keepdim), x)


def aminmax(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return amin(g, x, axis, keepdim), amax(g, x, axis, keepdim)


def max_(g: Lowering, x: str, *rest: Any) -> Result:
    """Lower max: () over all axes; (axis, keepdim) for values and indices, of which unused ones vanish; or (other)."""
    if rest and isinstance(rest[0], str):
        return g.b.add(Maximum(), x, rest[0])
    return (amax(g, x, *rest), argmax(g, x, *rest)) if rest else amax(g, x)


def min_(g: Lowering, x: str, *rest: Any) -> Result:
    if rest and isinstance(rest[0], str):
        return g.b.add(Minimum(), x, rest[0])
    return (amin(g, x, *rest), argmin(g, x, *rest)) if rest else amin(g, x)


def any_(g: Lowering, x: str, axes: Axes = None, keepdim: bool = False) -> str:
    return g.b.add(AnyOf(axes_of(g, x, axes), keepdim), x)


def all_(g: Lowering, x: str, axes: Axes = None, keepdim: bool = False) -> str:
    return g.b.add(AllOf(axes_of(g, x, axes), keepdim), x)


def deviation(g: Lowering, x: str, *rest: Any) -> tuple[tuple[int, ...], bool, float]:
    """Parse var's and std's arguments: (unbiased), (axes, unbiased, keepdim) or (axes, correction, keepdim)."""
    axes, correction, keepdim = rest if len(rest) == 3 else (None, *rest, False)
    return axes_of(g, x, axes), keepdim, 1.0 if correction is None else float(correction)


def var(g: Lowering, x: str, *rest: Any) -> str:
    return g.b.add(Var(*deviation(g, x, *rest)), x)


def std(g: Lowering, x: str, *rest: Any) -> str:
    return g.b.add(Std(*deviation(g, x, *rest)), x)


def var_mean(g: Lowering, x: str, *rest: Any) -> Result:
    return var(g, x, *rest), g.b.add(Mean(*deviation(g, x, *rest)[:2]), x)


def std_mean(g: Lowering, x: str, *rest: Any) -> Result:
    return std(g, x, *rest), g.b.add(Mean(*deviation(g, x, *rest)[:2]), x)


def logsumexp(g: Lowering, x: str, axes: Axes, keepdim: bool = False) -> str:
    return g.b.add(LogSumExp(axes_of(g, x, axes), keepdim), x)


def vector_norm(
    g: Lowering, x: str, order: Scalar | None = 2, axes: Axes = None, keepdim: bool = False, dtype: str | None = None
) -> str:
    x = elementwise.to(g, x, dtype)
    return g.b.add(VectorNorm(axes_of(g, x, axes), keepdim, 2.0 if order is None else float(order)), x)


def norm(g: Lowering, x: str, order: Scalar | None = 2, *rest: Any) -> str:
    """Lower the older form of norm: (dtype) for all axes, or (axes, keepdim, dtype)."""
    return vector_norm(g, x, order, None, False, *rest) if len(rest) == 1 else vector_norm(g, x, order, *rest)


# --- along one axis -----------------------------------------------------------------------------------------


def arg(g: Lowering, op: type[ArgMax], x: str, axis: int | None, keepdim: bool) -> str:
    """Lower argmax or argmin; without an axis, return the index into all elements in a row."""
    if axis is not None and g.shape(x):
        return g.b.add(op(g.axis(x, axis), keepdim), x)
    flat = g.b.add(op(0, False), shapes.reshape(g, x, (-1,)))
    return shapes.reshape(g, flat, (1,) * len(g.shape(x))) if keepdim else flat


def argmax(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> str:
    return arg(g, ArgMax, x, axis, keepdim)


def argmin(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> str:
    return arg(g, ArgMin, x, axis, keepdim)


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


def median(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return middle(g, x, axis, keepdim, quiet=False)


def nanmedian(g: Lowering, x: str, axis: int | None = None, keepdim: bool = False) -> Result:
    return middle(g, x, axis, keepdim, quiet=True)


def middle(g: Lowering, x: str, axis: int | None, keepdim: bool, quiet: bool) -> Result:
    """Lower median. Without an axis it is that of all elements, and only the value is returned."""
    if axis is None:
        return g.b.add_many(Median(0, quiet), g.reshape(x, (g[x].count,)))[0]
    return choose(g, Median(g.axis(x, axis), quiet), x, keepdim)


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
    **rows("max", max_, Amax, ArgMax, Maximum),
    **rows("min", min_, Amin, ArgMin, Minimum),
    **rows("any", any_, AnyOf),
    **rows("all", all_, AllOf),
    **rows("var", var, Var),
    **rows("std", std, Std),
    **rows("var_mean", var_mean, Mean, Var),
    **rows("std_mean", std_mean, Mean, Std),
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
    **rows("median", median, Median),
    **rows("nanmedian", nanmedian, Median),
    **rows("mode", mode, Mode),
    **rows("cdist _cdist_forward", cdist, Cdist),
}
