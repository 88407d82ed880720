"""Lowers tinygrad's arithmetic, functions of one number, comparisons and reductions. The functions have tinygrad's
parameters; tensors are passed as names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, log

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import activations, elementwise, reduce
from baretorch.frontends.aten.elementwise import with_pytorch_types
from baretorch.frontends.aten.promotion import cast, promote, to_float
from baretorch.frontends.lowering import Build, Lowering, Result, Scalar, named_operators
from baretorch.ir.graph import DType, Op
from baretorch.ops import functions
from baretorch.ops.activations import Elu, Hardsigmoid
from baretorch.ops.elementwise import Mul, Remainder
from baretorch.ops.logic import Eq, Le, Lt, Ne
from baretorch.ops.reduce import Mean, Prod, Std, Sum, Var

Operand = str | Scalar
Axes = int | Sequence[int] | None


def _pair(build: Callable[[Lowering, Operand, Operand], str]) -> Build:
    """Lower a method of two operands, which may be swapped."""

    def made(g: Lowering, x: Operand, y: Operand, reverse: bool = False) -> str:
        return build(g, y, x) if reverse else build(g, x, y)

    return made


def _swap(op: Lt | Le) -> Build:
    return lambda g, x, y: elementwise.compare(g, op, y, x)


def _div(g: Lowering, x: Operand, y: Operand, reverse: bool = False, rounding_mode: str | None = None) -> str:
    return elementwise.div(g, *((y, x) if reverse else (x, y)), rounding_mode)


def _to(label: str) -> Build:
    return lambda g, x: elementwise.to(g, x, label)


def _isinf(g: Lowering, x: str, positive: bool = True, negative: bool = True) -> str:
    if positive and negative:
        return elementwise.isinf(g, x)
    if not positive and not negative:
        return g.b.const("never", np.zeros(g.shape(x), np.bool_))
    return elementwise.compare(g, Eq(), x, inf if positive else -inf)


def _hardsigmoid(g: Lowering, x: str, alpha: float = 1 / 6, beta: float = 0.5) -> str:
    if (alpha, beta) == (1 / 6, 0.5):
        return g.b.add(Hardsigmoid(), x)
    return elementwise.clamp(g, elementwise.add(g, elementwise.mul(g, x, alpha), beta), 0, 1)


def _bits(name: str) -> Build:
    build = elementwise.ROWS[f"aten::{name}"].build
    return lambda g, x, y, reverse=False: build(g, x, y)


# --- reductions ---------------------------------------------------------------------------------------------


def _reduction(op: Callable[[tuple[int, ...], bool], Op], numbers: bool = False) -> Build:
    """Lower a reduction; booleans are counted."""

    def made(g: Lowering, x: str, axis: Axes = None, keepdim: bool = False, dtype: str | None = None) -> str:
        x = elementwise.to(g, x, dtype)
        if axis == ():
            return x
        x = cast(g, x, DType.INT32) if g[x].dtype is DType.BOOL else x
        (x,) = (x,) if numbers else to_float(g, x)
        return g.b.add(op(reduce.axes_of(g, x, axis), keepdim), x)

    return made


def _spread(op: Callable[[tuple[int, ...], bool, float], Op]) -> Build:
    def made(g: Lowering, x: str, axis: Axes = None, keepdim: bool = False, correction: float = 1) -> str:
        return g.b.add(op(reduce.axes_of(g, x, axis), keepdim, float(correction)), x)

    return made


def _softmax(build: Callable[..., str], name: str) -> Build:
    def made(g: Lowering, x: str, axis: Axes = -1, dtype: str | None = None) -> str:
        axes = reduce.axes_of(g, x, axis)
        if len(axes) != 1:
            raise CompileError(f"{name} over {len(axes)} axes is not supported", need="one axis", try_="x.flatten()")
        return build(g, x, axes[0], dtype)

    return made


def _sort(g: Lowering, x: str, dim: int = -1, descending: bool = False) -> Result:
    return reduce.sort(g, x, dim, descending)


ROWS: Mapping[str, Build] = {
    **{name: with_pytorch_types(op) for name, op in named_operators(lambda names: names.tinygrad).items()},
    "add": _pair(elementwise.add),
    "sub": _pair(elementwise.sub),
    "mul": _pair(elementwise.mul),
    "div": _div,
    "mod": _pair(lambda g, x, y: g.b.add(Remainder(), *promote(g, x, y))),
    "pow": _pair(elementwise.pow_),
    "bitwise_and": _bits("bitwise_and"),
    "bitwise_or": _bits("bitwise_or"),
    "bitwise_xor": _bits("bitwise_xor"),
    "square": elementwise.square,
    "exp2": lambda g, x: g.b.add(functions.Exp(), g.b.add(Mul(), *to_float(g, x, log(2)))),
    "tan": elementwise.tan,
    "relu": lambda g, x: elementwise.clamp(g, x, 0),
    "relu6": lambda g, x: elementwise.clamp(g, x, 0, 6),
    "clamp": elementwise.clamp,
    "clip": elementwise.clamp,
    "hardtanh": lambda g, x, lo=-1, hi=1: elementwise.clamp(g, x, lo, hi),
    "hardsigmoid": _hardsigmoid,
    "leaky_relu": activations.leaky_relu,
    "elu": lambda g, x, alpha=1.0: activations.elu(g, x, alpha),
    "celu": activations.celu,
    "selu": lambda g, x, alpha, gamma: g.b.add(Elu(float(alpha * gamma), float(gamma), 1.0), x),
    "gelu": activations.gelu,
    "softplus": activations.softplus,
    "__gt__": _swap(Lt()),
    "__ge__": _swap(Le()),
    "isnan": lambda g, x: elementwise.compare(g, Ne(), x, x),
    "isinf": _isinf,
    "isfinite": elementwise.isfinite,
    "where": elementwise.where,
    "masked_fill": elementwise.masked_fill,
    "cast": elementwise.to,
    "float": _to("float32"),
    "int": _to("int32"),
    "bool": _to("bool"),
    "long": _to("int64"),
    "sum": _reduction(Sum, numbers=True),
    "prod": _reduction(Prod, numbers=True),
    "mean": _reduction(Mean),
    "max": reduce.amax,
    "min": reduce.amin,
    "any": reduce.any_,
    "all": reduce.all_,
    "var": _spread(Var),
    "std": _spread(Std),
    "logsumexp": reduce.logsumexp,
    "softmax": _softmax(reduce.softmax, "softmax"),
    "log_softmax": _softmax(reduce.log_softmax, "log_softmax"),
    "argmax": reduce.argmax,
    "argmin": reduce.argmin,
    "cumsum": lambda g, x, axis=0: reduce.cumsum(g, x, axis),
    "topk": reduce.topk,
    "sort": _sort,
    "argsort": lambda g, x, dim=-1, descending=False: _sort(g, x, dim, descending)[1],
}
