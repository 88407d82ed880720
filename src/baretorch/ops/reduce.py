"""Reductions: the elements along some of the axes become one.

To add one, write a class with its function and types, a row in the C file's list, and a row in the table of operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any, ClassVar, TypeVar

import numpy as np

from baretorch.ir.graph import Array, DType, Op, Permuted, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.loops import fill_front, nest_loops, permuted_steps

LOOPS = 3  # nested loops of the kernels over the axes that are kept, and over those that are not

Types = Mapping[DType, DType]  # of the input and of the output
FLOAT_TYPES: Types = {DType.FLOAT32: DType.FLOAT32}
NUMBER_TYPES: Types = {**FLOAT_TYPES, DType.INT32: DType.INT32, DType.INT64: DType.INT64}
SUMS: Types = {**FLOAT_TYPES, DType.INT32: DType.INT64, DType.INT64: DType.INT64, DType.BOOL: DType.INT64}
TRUTHS: Types = dict.fromkeys(SUMS, DType.BOOL)

SUFFIXES = {DType.FLOAT32: "f32", DType.INT32: "s32", DType.INT64: "s64", DType.BOOL: "bool"}


@dataclass(frozen=True)
class Reduction(Op):
    """The elements along `axes` become one; the axes stay as dimensions of 1 if `keepdim`."""

    types: ClassVar[Types] = FLOAT_TYPES
    function: ClassVar[Callable[..., Any]]  # in NumPy
    of_nothing: ClassVar[bool] = True  # no elements give a result too
    axes: tuple[int, ...]
    keepdim: bool

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need_type(self, self.types, x)
        need_axes(self, self.axes, x)
        if not self.of_nothing:
            need_elements(self, self.axes, x)
        return (Signature(reduce_shape(x.shape, self.axes, self.keepdim), self.types[x.dtype]),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        (x,) = inputs
        dtype = DType.of(x.dtype.name)
        assert dtype is not None
        with np.errstate(all="ignore"):
            y = np.asarray(self.value(x.astype(np.float64 if dtype is DType.FLOAT32 else np.int64)))
            return (y.astype(self.types[dtype].numpy).reshape(reduce_shape(x.shape, self.axes, self.keepdim)),)

    def value(self, x: Array) -> Any:
        """Return the result from float64 or int64, with the axes left as dimensions of 1."""
        return type(self).function(x, axis=self.axes, keepdims=True)

    def divisor(self, shape: Shape) -> float:
        """Return the number that the kernel divides by, if it divides."""
        return float(prod(shape[a] for a in self.axes))

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        op = replace(self, axes=tuple(sorted(dims[a] for a in self.axes)))
        return Permuted(op, dims if self.keepdim else drop_axes(dims, self.axes))


class Sum(Reduction, name="sum", function=np.sum, types=SUMS):
    """The sum over `axes`; integers and truth values are counted in int64."""


@dataclass(frozen=True)
class Mean(Reduction, name="mean"):
    """The mean over `axes`."""

    def value(self, x: Array) -> Any:
        return np.divide(x.sum(axis=self.axes, keepdims=True), self.divisor(x.shape))


class Prod(Reduction, name="prod", function=np.prod):
    """The product over `axes`."""


class Amax(Reduction, name="amax", function=np.max, types=NUMBER_TYPES, of_nothing=False):
    """The largest element over `axes`; NaN if one is NaN."""


class Amin(Reduction, name="amin", function=np.min, types=NUMBER_TYPES, of_nothing=False):
    """The smallest element over `axes`; NaN if one is NaN."""


class AnyOf(Reduction, name="any", function=np.any, types=TRUTHS):
    """Report whether any element over `axes` is not zero."""


class AllOf(Reduction, name="all", function=np.all, types=TRUTHS):
    """Report whether all elements over `axes` are not zero."""


@dataclass(frozen=True)
class VectorNorm(Reduction, name="vector_norm"):
    """The norm of order `ord` over `axes`: 1, 2, inf (the largest absolute value) or -inf (the smallest)."""

    ord: float

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        need(self.ord in _NORMS, self, f"order {self.ord} is not supported", inputs, "order 1, 2, inf or -inf")
        if abs(self.ord) == inf:
            need_elements(self, self.axes, inputs[0])
        return super().infer(inputs)

    def value(self, x: Array) -> Any:
        size = np.abs(x)
        if abs(self.ord) == inf:
            return (np.max if self.ord > 0 else np.min)(size, axis=self.axes, keepdims=True)
        if self.ord == 1:
            return size.sum(axis=self.axes, keepdims=True)
        return np.sqrt((size * size).sum(axis=self.axes, keepdims=True))


@dataclass(frozen=True)
class Var(Reduction, name="var"):
    """The variance over `axes`: squared deviations from the mean, divided by their number less `correction`."""

    correction: float

    def value(self, x: Array) -> Any:
        mean = np.divide(x.sum(axis=self.axes, keepdims=True), super().divisor(x.shape))
        return np.divide(((x - mean) ** 2).sum(axis=self.axes, keepdims=True), self.divisor(x.shape))

    def divisor(self, shape: Shape) -> float:
        return max(super().divisor(shape) - self.correction, 0.0)


@dataclass(frozen=True)
class Std(Var, name="std"):
    """The standard deviation over `axes`: the root of the variance."""

    def value(self, x: Array) -> Any:
        return np.sqrt(super().value(x))


@dataclass(frozen=True)
class LogSumExp(Reduction, name="logsumexp"):
    """The logarithm of the sum of e^x over `axes`."""

    def value(self, x: Array) -> Any:
        top = x.max(axis=self.axes, keepdims=True, initial=-inf)
        top = np.where(np.isinf(top), 0.0, top)
        return np.log(np.exp(x - top).sum(axis=self.axes, keepdims=True)) + top


# --- also used by other operators along axes ----------------------------------------------------------------


def drop_axes(dims: Shape, axes: Shape) -> Shape:
    """Return the permutation that is left when the permuted value loses these axes."""
    kept = [d for i, d in enumerate(dims) if i not in axes]
    return tuple(sorted(kept).index(d) for d in kept)


def reduce_shape(shape: Shape, axes: Sequence[int], keepdim: bool) -> Shape:
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keepdim or i not in axes)


def need_type(op: Op, types: Types, x: Tensor) -> None:
    labels = [t.label for t in types]
    need(
        x.dtype in types,
        op,
        f"{x.dtype.label} is not supported",
        [x],
        " or ".join(filter(None, [", ".join(labels[:-1]), labels[-1]])),
        "cast the tensor to float32 in the model",
    )


def need_elements(op: Op, axes: Sequence[int], x: Tensor) -> None:
    need(all(x.shape[a] for a in axes), op, "the axes have no elements", [x], "axes that are not empty")


def reduction_loops(shape: Shape, axes: Sequence[int], *others: Sequence[int]) -> tuple[tuple[str, Shape], ...] | None:
    """Return counts and steps of the loops over kept and over reduced axes, as fields of a parameter struct, or None if
    there are too many. `others` are further steps per axis, in addition to those of a tensor of this shape."""
    fields: list[tuple[str, Shape]] = []
    for name, chosen in (("kept", False), ("reduced", True)):
        some = [i for i in range(len(shape)) if (i in axes) is chosen]
        counts, walks = nest_loops(
            tuple(shape[i] for i in some), *(tuple(s[i] for i in some) for s in (permuted_steps(shape, ()), *others))
        )
        if len(counts) > LOOPS:
            return None
        fields.append((name, fill_front(counts, LOOPS, 1)))
        fields += zip((f"{name}_step", f"{name}_place"), (fill_front(w, LOOPS, 0) for w in walks), strict=False)
    return tuple(fields)


# --- kernels ------------------------------------------------------------------------------------------------


def _params(call: Call[Any]) -> Params:
    loops = reduction_loops(call.x.shape, call.op.axes)
    assert loops is not None, "`fits` was not asked"
    return Params("bt_reduce", (*loops, ("divisor", call.op.divisor(call.x.shape))))


R = TypeVar("R", bound=Reduction)


def _kernel(symbol: str, dtype: DType, also: Callable[[Call[R]], bool] = lambda call: True) -> Kernel[R]:
    def fits(call: Call[R]) -> bool:
        return call.x.dtype is dtype and also(call) and reduction_loops(call.x.shape, call.op.axes) is not None

    return Kernel(symbol, "reduce/ref.c", _params, fits=fits)


def _kernels(op: type[R]) -> tuple[Kernel[R], ...]:
    return tuple(_kernel(f"bt_{op.name}_{SUFFIXES[dtype]}_ref", dtype) for dtype in op.types)


_NORMS = {1.0: "1", 2.0: "2", inf: "max", -inf: "min"}


def _norm(order: float, name: str) -> Kernel[VectorNorm]:
    return _kernel(f"bt_norm_{name}_f32_ref", DType.FLOAT32, lambda call: call.op.ord == order)


SUM = _kernels(Sum)
MEAN = _kernels(Mean)
PROD = _kernels(Prod)
AMAX = _kernels(Amax)
AMIN = _kernels(Amin)
ANY = _kernels(AnyOf)
ALL = _kernels(AllOf)
VECTOR_NORM = tuple(_norm(order, name) for order, name in _NORMS.items())
VAR = _kernels(Var)
STD = _kernels(Std)
LOGSUMEXP = _kernels(LogSumExp)
