"""Rows of the ATen table: reductions, norms, and operators along one axis.

Several overloads share a row; the number and kind of their arguments selects one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baretorch.frontends.aten import elementwise, layers, shapes
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Ints, Lowering, Result, Scalar
from baretorch.ops.elementwise import Add, Maximum, Minimum, Mul
from baretorch.ops.norm import GroupNorm, LayerNorm
from baretorch.ops.reduce import AllOf, Amax, Amin, AnyOf, LogSumExp, Mean, Prod, Reduction, Std, Sum, Var, VectorNorm
from baretorch.ops.scan import ArgMax, ArgMin, CumSum, TopK
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


# --- norms --------------------------------------------------------------------------------------------------


def layer_norm(
    g: Lowering, x: str, shape: Ints, weight: str | None = None, bias: str | None = None, eps: float = 1e-5, *_: Any
) -> str:
    return g.b.add(LayerNorm(last(g, x, shape), eps), x, *affine(g, weight, bias))


def rms_norm(g: Lowering, x: str, shape: Ints, weight: str | None = None, eps: float | None = None) -> str:
    small = float(np.finfo(np.float32).eps) if eps is None else eps
    return g.b.add(LayerNorm(last(g, x, shape), small, centred=False), x, *affine(g, weight, None))


def last(g: Lowering, x: str, shape: Ints) -> tuple[int, ...]:
    rank = len(g.shape(x))
    return tuple(range(rank - len(shape), rank))


def affine(g: Lowering, weight: str | None, bias: str | None) -> tuple[str, str]:
    """Return weight and bias, or ones and zeros for missing ones."""
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    return weight or g.b.const("norm_one", one), bias or g.b.const("norm_zero", zero)


def group_norm(
    g: Lowering, x: str, groups: int, weight: str | None = None, bias: str | None = None, eps: float = 1e-5, *_: Any
) -> str:
    return g.b.add(GroupNorm(groups, eps), x, *affine(g, weight, bias))


def native_group_norm(
    g: Lowering, x: str, weight: str | None, bias: str | None, _n: int, _c: int, _hw: int, groups: int, eps: float
) -> str:
    return group_norm(g, x, groups, weight, bias, eps)


def instance_norm(
    g: Lowering,
    x: str,
    weight: str | None,
    bias: str | None,
    running_mean: str | None,
    running_var: str | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    *_: Any,
) -> str:
    if not use_input_stats:
        return layers.batch_norm(g, x, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        raise layers.trains("instance_norm", running=True)
    return group_norm(g, x, g.shape(x)[1], weight, bias, eps)


def batch_norm_of_batch(g: Lowering, x: str, weight: str | None, bias: str | None, *rest: Any) -> str:
    """Lower batch_norm with the statistics of the batch itself."""
    raise layers.trains("batch_norm", running=not isinstance(rest[0], bool))


ROWS: dict[str, AtenRow] = {
    "aten::sum": AtenRow(sum_, (Sum,)),
    "aten::mean": AtenRow(mean, (Mean,)),
    "aten::prod": AtenRow(prod, (Prod,)),
    "aten::amax": AtenRow(amax, (Amax,)),
    "aten::amin": AtenRow(amin, (Amin,)),
    "aten::aminmax": AtenRow(aminmax, (Amax, Amin)),
    "aten::max": AtenRow(max_, (Amax, ArgMax, Maximum)),
    "aten::min": AtenRow(min_, (Amin, ArgMin, Minimum)),
    "aten::any": AtenRow(any_, (AnyOf,)),
    "aten::all": AtenRow(all_, (AllOf,)),
    "aten::var": AtenRow(var, (Var,)),
    "aten::std": AtenRow(std, (Std,)),
    "aten::var_mean": AtenRow(var_mean, (Mean, Var)),
    "aten::std_mean": AtenRow(std_mean, (Mean, Std)),
    "aten::logsumexp": AtenRow(logsumexp, (LogSumExp,)),
    "aten::linalg_vector_norm": AtenRow(vector_norm, (VectorNorm,)),
    "aten::norm": AtenRow(norm, (VectorNorm,)),
    "aten::argmax": AtenRow(argmax, (ArgMax,)),
    "aten::argmin": AtenRow(argmin, (ArgMin,)),
    "aten::cumsum": AtenRow(cumsum, (CumSum,)),
    "aten::topk": AtenRow(topk, (TopK,)),
    "aten::sort": AtenRow(sort, (TopK,)),
    "aten::argsort": AtenRow(argsort, (TopK,)),
    "aten::softmax": AtenRow(softmax, (Softmax,)),
    "aten::_softmax": AtenRow(softmax, (Softmax,)),
    "aten::log_softmax": AtenRow(log_softmax, (LogSoftmax,)),
    "aten::_log_softmax": AtenRow(log_softmax, (LogSoftmax,)),
    "aten::layer_norm": AtenRow(layer_norm, (LayerNorm,)),
    "aten::native_layer_norm": AtenRow(layer_norm, (LayerNorm,)),
    "aten::rms_norm": AtenRow(rms_norm, (LayerNorm,)),
    "aten::_fused_rms_norm": AtenRow(rms_norm, (LayerNorm,)),
    "aten::group_norm": AtenRow(group_norm, (GroupNorm,)),
    "aten::native_group_norm": AtenRow(native_group_norm, (GroupNorm,)),
    "aten::instance_norm": AtenRow(instance_norm, (GroupNorm, Add, Mul)),
    "aten::_native_batch_norm_legit": AtenRow(batch_norm_of_batch, refused=True),
    "aten::_native_batch_norm_legit_functional": AtenRow(batch_norm_of_batch, refused=True),
}
