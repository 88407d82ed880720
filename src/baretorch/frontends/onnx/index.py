"""Rows of the ONNX table: elements selected, and written, by tensors of indices."""

from __future__ import annotations

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import index as aten
from baretorch.frontends.aten import shapes
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import Lowering
from baretorch.frontends.onnx.call import OnnxCall, widen
from baretorch.frontends.onnx.lowering import OnnxLowering, OnnxRow
from baretorch.ir.graph import DType
from baretorch.ops.elementwise import Add, Remainder
from baretorch.ops.index import IndexPut, RavelIndex, Scatter, ScatterReduce
from baretorch.ops.logic import Eq, Lt, Where

REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin"}  # as scatter_reduce calls them


def gather(g: OnnxLowering, call: OnnxCall) -> str:
    x, index = call.need(0), call.need(1)
    return aten.select_rows(g, x, g.axis(x, int(call.attribute("axis", 0))), index)


def gather_elements(g: OnnxLowering, call: OnnxCall) -> str:
    return aten.gather(g, call.need(0), int(call.attribute("axis", 0)), call.need(1))


def gather_nd(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower GatherND. The last dimension of the indices counts axes; those of the batch select themselves."""
    x, indices = call.need(0), call.need(1)
    batch = int(call.attribute("batch_dims", 0))
    *outer, count = g.shape(indices)
    own = []
    for i in range(batch):
        at = np.arange(outer[i], dtype=np.int32).reshape([-1 if j == i else 1 for j in range(len(outer))])
        own.append(g.b.const("batch", at))
    return aten.index(g, x, [*own, *_columns(g, indices, count)])


def _columns(g: Lowering, indices: str, count: int) -> list[str]:
    return [shapes.select(g, indices, -1, i) for i in range(count)]


def scatter_elements(g: OnnxLowering, call: OnnxCall) -> str:
    x, index, source = (call.need(i) for i in range(3))
    axis, kind = g.axis(x, int(call.attribute("axis", 0))), call.attribute("reduction", "none")
    part = aten.cut(g, x, g.shape(index), axis)
    return aten.put_back(g, x, _scatter(g, call, kind, axis, part, index, source))


def _scatter(g: Lowering, call: OnnxCall, kind: str, axis: int, x: str, index: str, source: str) -> str:
    if kind in ("none", "add"):
        return g.b.add(Scatter(axis, kind == "add"), x, index, source)
    if kind in REDUCTIONS:
        return g.b.add(ScatterReduce(axis, REDUCTIONS[kind]), x, index, source)
    raise CompileError(f"{call.op}: reduction {kind!r} is not supported", need=f"none, add, {', '.join(REDUCTIONS)}")


def scatter_nd(g: OnnxLowering, call: OnnxCall) -> str:
    """Lower ScatterND: merge all indexed axes into one, and all others into another."""
    x, indices, source = (call.need(i) for i in range(3))
    shape, kind = g.shape(x), call.attribute("reduction", "none")
    *_, count = g.shape(indices)
    first, *others = _columns(g, indices, count)
    at, size = first, shape[0]
    for axis, column in enumerate(others, 1):
        at = g.b.add(RavelIndex((size, shape[axis])), at, column)
        size *= shape[axis]
    at = g.reshape(at, (g[at].count,))
    rows = g.reshape(x, (size, g[x].count // max(size, 1)))
    values = g.reshape(source, (g[at].count, g.shape(rows)[1]))
    if kind in ("none", "add"):
        put = g.b.add(IndexPut(0, kind == "add"), rows, at, values)
    else:
        every = aten.expanded(g, g.reshape(at, (g[at].count, 1)), g.shape(values))
        put = _scatter(g, call, kind, 0, rows, every, values)
    return g.reshape(put, shape)


def tensor_scatter(g: OnnxLowering, call: OnnxCall) -> str:
    """Update a part of a cache: entries from write_indices[batch] on, along one axis."""
    cache, update, begin = call.need(0), call.need(1), call.input(2)
    axis = g.axis(cache, int(call.attribute("axis", -2)))
    shape = g.shape(update)
    steps = np.arange(shape[axis], dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    at = g.b.const("places", steps)
    if begin is not None:
        first = g.reshape(cast(g, begin, DType.INT64), (shape[0], *(1,) * (len(shape) - 1)))
        at = g.b.add(Add(), first, at)
    if call.attribute("mode", "linear") == "circular":
        at = g.b.add(Remainder(), at, g.operand(g.shape(cache)[axis], at))
    return g.b.add(Scatter(axis), cache, aten.expanded(g, at, shape), update)


def one_hot(g: OnnxLowering, call: OnnxCall) -> str:
    """Compare each index with all classes; an index out of range equals none."""
    index, values = call.need(0), call.need(2)
    depth = int(g.constant(call.need(1), "OneHot: depth").reshape(()))
    rank = len(g.shape(index))
    axis = int(call.attribute("axis", -1))
    axis = axis + rank + 1 if axis < 0 else axis
    at = widen(g, index)
    below = g.b.add(Lt(), at, g.operand(0, at))
    at = g.b.add(Where(), below, g.b.add(Add(), at, g.operand(depth, at)), at)
    every = np.arange(depth).astype(g[at].dtype.numpy).reshape([-1 if i == axis else 1 for i in range(rank + 1)])
    hot = g.b.add(Eq(), shapes.unsqueeze(g, at, axis), g.b.const("classes", every))
    off, on = (widen(g, shapes.select(g, values, 0, i)) for i in (0, 1))
    return cast(g, g.b.add(Where(), hot, on, off), g[values].dtype)


def compress(g: OnnxLowering, call: OnnxCall) -> str:
    x, axis = call.need(0), call.attribute("axis")
    mask = g.constant(call.need(1), "Compress: the condition, which the result's size depends on,")
    if axis is None:
        x, axis = g.reshape(x, (g[x].count,)), 0
    return aten.take(g, x, g.axis(x, int(axis)), np.flatnonzero(mask))


ROWS: dict[str, OnnxRow] = {
    "Gather": OnnxRow(gather),
    "GatherElements": OnnxRow(gather_elements),
    "GatherND": OnnxRow(gather_nd),
    "ScatterElements": OnnxRow(scatter_elements),
    "ScatterND": OnnxRow(scatter_nd),
    "TensorScatter": OnnxRow(tensor_scatter),
    "OneHot": OnnxRow(one_hot),
    "Compress": OnnxRow(compress),
}
