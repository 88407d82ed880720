"""Rows of the ONNX table: elements selected, and written, by tensors of indices."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index as aten
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.indexing import index_columns, merge_indexed
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import widen
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow, row
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Add, Remainder
from baretorch.ops.index import IndexPut, Scatter, ScatterReduce
from baretorch.ops.logic import Eq, Lt, Where

REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin"}  # as scatter_reduce calls them


def gather_nd(g: OnnxLowering, x: str, indices: str, *, batch_dims: int = 0) -> str:
    """Lower GatherND. The last dimension of the indices has an index for each of the first axes after the batch
    axes."""
    outer = g.shape(indices)[:-1]
    own = []
    for i in range(batch_dims):
        at = np.arange(outer[i], dtype=np.int32).reshape([-1 if j == i else 1 for j in range(len(outer))])
        own.append(g.b.const("batch", at))
    return aten.index(g, x, [*own, *index_columns(g, indices)])


def scatter_elements(
    g: OnnxLowering, x: str, index: str, source: str, *, axis: int = 0, reduction: str = "none"
) -> str:
    axis = g.axis(x, axis)
    if len(g.shape(index)) != len(g.shape(x)) or g.shape(source) != g.shape(index):
        raise CompileError(
            "ScatterElements: the shapes do not fit",
            have=f"{g[x]}, {g[index]}, {g[source]}",
            need="indices and updates of one shape, with as many dimensions as the data",
        )
    part = aten.cut(g, x, g.shape(index), axis)
    return aten.put_back(g, x, _scatter(g, "ScatterElements", reduction, axis, part, index, source))


def _scatter(g: Lowering, op: str, kind: str, axis: int, x: str, index: str, source: str) -> str:
    if kind in ("none", "add"):
        return g.b.add(Scatter(axis, kind == "add"), x, index, source)
    if kind in REDUCTIONS:
        return g.b.add(ScatterReduce(axis, REDUCTIONS[kind]), x, index, source)
    raise CompileError(f"{op}: reduction {kind!r} is not supported", need=f"none, add, {', '.join(REDUCTIONS)}")


def scatter_nd(g: OnnxLowering, x: str, indices: str, source: str, *, reduction: str = "none") -> str:
    rows, at = merge_indexed(g, x, indices)
    if reduction in ("none", "add"):
        put = g.b.add(IndexPut(0, reduction == "add"), rows, at, source)
    else:
        count, size = g[at].count, g.shape(rows)[0]
        values = g.reshape(source, (count, g[source].count // max(count, 1)))
        every = aten.expand_to(g, g.reshape(at, (count, 1)), g.shape(values))
        flat = g.reshape(rows, (size, g[rows].count // max(size, 1)))
        put = _scatter(g, "ScatterND", reduction, 0, flat, every, values)
    return g.reshape(put, g.shape(x))


def tensor_scatter(
    g: OnnxLowering, cache: str, update: str, begin: str | None = None, *, axis: int = -2, mode: str = "linear"
) -> str:
    """Update a part of a cache: entries from write_indices[batch] on, along one axis."""
    axis = g.axis(cache, axis)
    shape = g.shape(update)
    steps = np.arange(shape[axis], dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    at = g.b.const("places", steps)
    if begin is not None:
        first = g.reshape(cast(g, begin, DType.INT64), (shape[0], *(1,) * (len(shape) - 1)))
        at = g.b.add(Add(), first, at)
    if mode == "circular":
        at = g.b.add(Remainder(), at, g.operand(g.shape(cache)[axis], at))
    return g.b.add(Scatter(axis), cache, aten.expand_to(g, at, shape), update)


def one_hot(g: OnnxLowering, index: str, classes: str, values: str, *, axis: int = -1) -> str:
    """Compare each index with all classes; an index out of range equals none."""
    depth = int(g.constant(classes, "OneHot: depth").reshape(()))
    rank = len(g.shape(index))
    axis = axis + rank + 1 if axis < 0 else axis
    at = widen(g, index)
    below = g.b.add(Lt(), at, g.operand(0, at))
    at = g.b.add(Where(), below, g.b.add(Add(), at, g.operand(depth, at)), at)
    every = np.arange(depth).astype(g[at].dtype.numpy).reshape([-1 if i == axis else 1 for i in range(rank + 1)])
    hot = g.b.add(Eq(), shapes.unsqueeze(g, at, axis), g.b.const("classes", every))
    off, on = (widen(g, shapes.select(g, values, 0, i)) for i in (0, 1))
    return cast(g, g.b.add(Where(), hot, on, off), g[values].dtype)


def compress(g: OnnxLowering, x: str, condition: str, *, axis: int | None = None) -> str:
    mask = g.constant(condition, "Compress: the condition, which the result's size depends on,")
    if axis is None:
        x, axis = g.reshape(x, (g[x].count,)), 0
    return aten.take(g, x, g.axis(x, axis), np.flatnonzero(mask))


ROWS: dict[str, OnnxRow] = {
    "Gather": row(lambda g, x, index, *, axis=0: aten.select_rows(g, x, g.axis(x, axis), index)),
    "GatherElements": row(lambda g, x, index, *, axis=0: aten.gather(g, x, axis, index)),
    "GatherND": row(gather_nd),
    "ScatterElements": row(scatter_elements),
    "ScatterND": row(scatter_nd),
    "TensorScatter": row(tensor_scatter),
    "OneHot": row(one_hot),
    "Compress": row(compress),
}
