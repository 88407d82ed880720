"""Elements chosen by indices that are tensors: index_select (also embedding), gather, index_put, scatter.

An index below 0 counts from the end; one that is still outside is taken as the nearest inside, where PyTorch
raises. Indices are int32 or int64; of an int64 the lower half counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Array, DType, Op, Permuted, Shape, Signature, Tensor
from baretorch.ops.helpers.check import need, need_axes
from baretorch.ops.helpers.kernel import Call, Kernel, Params
from baretorch.ops.helpers.strided import UNITS, unit_of
from baretorch.ops.move import Change, Overwrite

INDICES = (DType.INT32, DType.INT64)
ADDABLE = (DType.FLOAT32, DType.INT32)


class ByIndex(Op):
    """x, index, … -> y: the index selects entries of one axis of x."""

    axis: int

    def indices(self, inputs: Sequence[Tensor]) -> Mapping[int, int]:
        return {1: inputs[0].shape[self.axis]}

    def need_index(self, inputs: Sequence[Tensor]) -> None:
        """Raise unless the axis and the index are valid."""
        x, index = inputs[:2]
        need_axes(self, (self.axis,), x)
        _need_indices(self, inputs, index, x.shape[self.axis])


@dataclass(frozen=True)
class IndexSelect(ByIndex, name="index_select", computes=False, carried=slice(1)):
    """x, index -> x with the entries `index` of one axis; the axis becomes the dimensions of the index."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, index = inputs
        self.need_index(inputs)
        return (Signature((*x.shape[: self.axis], *index.shape, *x.shape[self.axis + 1 :]), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, index = inputs
        return (np.take(x, to_valid(index, x.shape[self.axis]), self.axis),)

    def permute(self, dims: Shape, inputs: Sequence[Tensor]) -> Permuted | None:
        return Permuted(replace(self, axis=dims[self.axis]), dims) if len(inputs[1].shape) == 1 else None


@dataclass(frozen=True)
class Gather(ByIndex, name="gather", computes=False):
    """x, index -> y[.., i, ..] = x[.., index[.., i, ..], ..] along one axis; the other dimensions are equal."""

    axis: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, index = inputs
        self.need_index(inputs)
        _need_alike(self, inputs, x, index, self.axis)
        return (Signature(index.shape, x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        x, index = inputs
        return (np.take_along_axis(x, to_valid(index, x.shape[self.axis]), self.axis),)


@dataclass(frozen=True)
class IndexPut(ByIndex, Overwrite, name="index_put"):
    """x, index, source -> x, but the entries `index` of one axis are the source's, or have them added."""

    axis: int
    accumulate: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, index, source = inputs
        self.need_index(inputs)
        shape = (*x.shape[: self.axis], *index.shape, *x.shape[self.axis + 1 :])
        need(source.shape == shape, self, "the source does not have the indexed shape", inputs, f"a source of {shape}")
        _need_source(self, inputs, self.accumulate)
        return super().infer(inputs)

    def change(self) -> Change:
        return Put(self.axis, self.accumulate)


@dataclass(frozen=True)
class Scatter(ByIndex, Overwrite, name="scatter"):
    """x, index, source -> x, but y[.., index[.., i, ..], ..] = source[.., i, ..] along one axis, or += it."""

    axis: int
    accumulate: bool = False

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x, index, source = inputs
        self.need_index(inputs)
        _need_alike(self, inputs, x, index, self.axis)
        need(source.shape == index.shape, self, "source and index differ in shape", inputs, "equal shapes")
        _need_source(self, inputs, self.accumulate)
        return super().infer(inputs)

    def change(self) -> Change:
        return PutAlong(self.axis, self.accumulate)


@dataclass(frozen=True)
class Put(Change, name="put"):
    """The change that index_put makes: index, source -> y."""

    axis: int
    accumulate: bool

    def write(self, y: Array, *inputs: Array) -> None:
        index, source = inputs
        at = to_valid(index, y.shape[self.axis]).reshape(-1)
        rows = source.reshape(*y.shape[: self.axis], at.size, *y.shape[self.axis + 1 :])
        _write(y, (slice(None),) * self.axis + (at,), rows, self.accumulate)


@dataclass(frozen=True)
class PutAlong(Change, name="put_along"):
    """The change that scatter makes: index, source -> y."""

    axis: int
    accumulate: bool

    def write(self, y: Array, *inputs: Array) -> None:
        index, source = inputs
        _write(y, _places(index, y, self.axis), source, self.accumulate)


@dataclass(frozen=True)
class RavelIndex(Op, name="ravel_index"):
    """a, b -> a * sizes[1] + b: indices into two axes of these sizes as one index into both as one."""

    sizes: tuple[int, int]

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        a, b = inputs
        for index, size in zip(inputs, self.sizes, strict=True):
            _need_indices(self, inputs, index, size)
        need(a.shape == b.shape, self, "the indices differ in shape", inputs, "equal shapes")
        return (Signature(a.shape, DType.INT32),)

    def indices(self, inputs: Sequence[Tensor]) -> Mapping[int, int]:
        return dict(enumerate(self.sizes))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        a, b = map(to_valid, inputs, self.sizes)
        return ((a * self.sizes[1] + b).astype(np.int32),)


def to_valid(index: Array, size: int) -> Array:
    """Return indices as kernels interpret them: int32, counted from the end if negative, and then the nearest
    inside."""
    low = index.astype(np.int32).astype(np.int64)
    return np.clip(np.where(low < 0, low + size, low), 0, max(size - 1, 0))


def _places(index: Array, y: Array, axis: int) -> tuple[Array, ...]:
    """Return the places of y that an index of each element names along an axis."""
    at: list[Array] = list(np.indices(index.shape, sparse=True))
    at[axis] = to_valid(index, y.shape[axis])
    return tuple(at)


def _write(y: Array, at: tuple[object, ...], source: Array, accumulate: bool) -> None:
    if accumulate:
        np.add.at(y, at, source)  # type: ignore[arg-type]
    else:
        y[at] = source  # type: ignore[index]


def _need_indices(op: Op, inputs: Sequence[Tensor], index: Tensor, size: int) -> None:
    valid = index.dtype in INDICES
    need(valid, op, f"{index.dtype.label} is not a valid index type", inputs, "int32 or int64", "index.to(torch.int32)")
    need(size > 0 or index.count == 0, op, "an axis without elements is indexed", inputs, "an axis with elements")


def _need_alike(op: Op, inputs: Sequence[Tensor], x: Tensor, index: Tensor, axis: int) -> None:
    same = len(x.shape) == len(index.shape) and all(
        a == b for i, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if i != axis
    )
    need(same, op, "input and index differ in more than the axis", inputs, f"equal sizes but for axis {axis}")


def _need_source(op: Op, inputs: Sequence[Tensor], accumulate: bool) -> None:
    x, _, source = inputs
    need(source.dtype is x.dtype, op, "source and input differ in type", inputs, "equal types")
    valid = not accumulate or x.dtype in ADDABLE
    need(valid, op, f"adding {x.dtype.label} is not supported", inputs, "float32 or int32")


# --- kernels ----------------------------------------------------------------------------------------------


def _split(shape: Shape, axis: int) -> tuple[int, int]:
    return prod(shape[:axis]), prod(shape[axis + 1 :])


def _rows(axis: int, indexed: Tensor, index: Tensor) -> tuple[int, Params]:
    """Return unit and parameters of a kernel that copies whole rows, one per index."""
    outer, inner = _split(indexed.shape, axis)
    size = inner * indexed.dtype.size
    unit = unit_of(size)
    return unit, _params(outer, index.count, 1, size // unit, indexed.shape[axis], (0, 1, 0), index)


def elements(axis: int, indexed: Tensor, index: Tensor) -> tuple[int, Params]:
    """Return unit and parameters of a kernel that copies each element by its own index."""
    outer, inner = _split(indexed.shape, axis)
    count, unit = index.shape[axis], unit_of(indexed.dtype.size)
    run = indexed.dtype.size // unit
    return unit, _params(outer, count, inner, run, indexed.shape[axis], (count * inner, inner, 1), index)


def _params(
    outer: int, count: int, inner: int, run: int, size: int, steps: tuple[int, int, int], index: Tensor
) -> Params:
    fields = (("outer", outer), ("count", count), ("inner", inner), ("run", run), ("size", size))
    names = ("index_outer", "index_step", "index_inner")
    return Params("bt_index", (*fields, *zip(names, steps, strict=True), ("words", index.dtype.size // 4)))


Prepare = Callable[[Call[Any]], tuple[int, Params]]


def _kernel(symbol: str, prepare: Prepare, fits: Callable[[Call[Any]], bool]) -> Kernel[Any]:
    return Kernel(f"bt_{symbol}_ref", "index/ref.c", lambda call: prepare(call)[1], fits=fits)


def _by_unit(stem: str, prepare: Prepare, plain: Callable[[Any], bool] = lambda op: True) -> tuple[Kernel[Any], ...]:
    """Return a kernel for each unit in which elements are copied."""

    def fits(unit: int, call: Call[Any]) -> bool:
        return plain(call.op) and prepare(call)[0] == unit

    return tuple(_kernel(f"{stem}_{8 * unit}", prepare, partial(fits, unit)) for unit in UNITS)


def _scatter(prepare: Prepare) -> tuple[Kernel[Any], ...]:
    """Return the kernels that put elements, or add them."""
    adding = (
        _kernel("scatter_add_f32", prepare, lambda call: call.y.dtype is DType.FLOAT32),
        _kernel("scatter_add_i32", prepare, lambda call: call.y.dtype is DType.INT32),
    )
    return (*_by_unit("scatter", prepare, lambda op: not op.accumulate), *adding)


def _rows_of_y(call: Call[Any]) -> tuple[int, Params]:
    return _rows(call.op.axis, call.y, call.inputs[0])


def _elements_of_y(call: Call[Any]) -> tuple[int, Params]:
    return elements(call.op.axis, call.y, call.inputs[0])


def _ravel(call: Call[RavelIndex]) -> Params:
    words = tuple(t.dtype.size // 4 for t in call.inputs)
    return Params("bt_ravel_index", (("count", call.y.count), ("size", call.op.sizes), ("words", words)))


INDEX_SELECT = _by_unit("gather", lambda call: _rows(call.op.axis, call.x, call.inputs[1]))
GATHER = _by_unit("gather", lambda call: elements(call.op.axis, call.x, call.inputs[1]))
PUT = _scatter(_rows_of_y)
PUT_ALONG = _scatter(_elements_of_y)
RAVEL_INDEX: tuple[Kernel[RavelIndex], ...] = (Kernel("bt_ravel_index_ref", "index/ref.c", _ravel),)


REDUCED = {DType.FLOAT32: "f32", DType.INT32: "s32"}
KINDS: dict[str, np.ufunc] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@dataclass(frozen=True)
class ScatterReduce(ByIndex, Overwrite, name="scatter_reduce"):
    """x, index, source -> x, but y[.., index[.., i, ..], ..] = f(itself, source[.., i, ..]) along one axis, where f is
    prod, amax or amin."""

    axis: int
    kind: str

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        x = inputs[0]
        if self.kind not in KINDS:
            raise InternalError(f"scatter_reduce by {self.kind}")
        need(x.dtype in REDUCED, self, f"{x.dtype.label} is not supported", inputs, "float32 or int32")
        return Scatter(self.axis).infer(inputs)

    def change(self) -> Change:
        return ReduceAlong(self.axis, self.kind)


@dataclass(frozen=True)
class ReduceAlong(Change, name="reduce_along"):
    """The change that scatter_reduce makes: index, source -> y."""

    axis: int
    kind: str

    def write(self, y: Array, *inputs: Array) -> None:
        index, source = inputs
        with np.errstate(all="ignore"):
            KINDS[self.kind].at(y, _places(index, y, self.axis), source)


def _reduce(kind: str, dtype: DType) -> Kernel[Any]:
    def fits(call: Call[ReduceAlong]) -> bool:
        return call.op.kind == kind and call.y.dtype is dtype

    return _kernel(f"scatter_{kind}_{REDUCED[dtype]}", _elements_of_y, fits)


REDUCE_ALONG = tuple(_reduce(kind, dtype) for kind in KINDS for dtype in REDUCED)
