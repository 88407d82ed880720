"""Rows of the ATen table: elements selected by tensors of indices.

Indices that are known ahead of time are checked here, and become slices where they count evenly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import permute, reshape, slice_
from baretorch.frontends.lowering import Ints, Lowering, Scalar, known_value
from baretorch.ir.graph import Array, DType
from baretorch.ops.elementwise import Mul
from baretorch.ops.index import Gather, IndexPut, IndexSelect, RavelIndex, Scatter, ScatterReduce
from baretorch.ops.layout import Expand, Unfold
from baretorch.ops.move import SliceScatter


def take(g: Lowering, x: str, axis: int, index: Array) -> str:
    """Take entries of an axis that are known ahead of time; the axis becomes the index's dimensions."""
    index = _check_indices(g, x, axis, index)
    shape = g.shape(x)
    flat = index.reshape(-1)
    step = int(flat[1] - flat[0]) if flat.size > 1 else 1
    if flat.size and step > 0 and np.array_equal(flat, flat[0] + step * np.arange(flat.size)):
        part = slice_(g, x, axis, int(flat[0]), int(flat[-1]) + 1, step)
        return reshape(g, part, (*shape[:axis], *index.shape, *shape[axis + 1 :]))
    if index.ndim == 2 and min(index.shape) > 1:  # windows that overlap need no table
        first, step, size = int(index[0, 0]), int(index[1, 0] - index[0, 0]), index.shape[1]
        windows = first + step * np.arange(len(index))[:, None] + np.arange(size)
        if 0 < step < size and np.array_equal(index, windows):
            end = int(index[-1, -1]) + 1
            rest = shape[axis] - end < step  # too short for one more window
            return g.b.add(Unfold(axis, size, step), slice_(g, x, axis, first, shape[axis] if rest else end))
    return g.b.add(IndexSelect(axis), x, g.b.const("index", index.astype(np.int32)))


def select_rows(g: Lowering, x: str, axis: int, index: str) -> str:
    known = known_value(g, index)
    return g.b.add(IndexSelect(axis), x, index) if known is None else take(g, x, axis, known)


def index_select(g: Lowering, x: str, axis: int, index: str) -> str:
    return select_rows(g, x, g.axis(x, axis), reshape(g, index, (-1,)))


def embedding(g: Lowering, table: str, index: str, *_: object) -> str:
    return select_rows(g, table, 0, index)


def unfold(g: Lowering, x: str, axis: int, size: int, step: int) -> str:
    """Take windows of an axis; their elements become the last dimension. A scalar counts as a row of one element."""
    if not g.shape(x):
        return g.reshape(x, (size,))
    axis = g.axis(x, axis)
    if step >= size or size == 0:  # windows do not overlap: a slice
        begin = np.arange(0, g.shape(x)[axis] - size + 1, step)
        windows = take(g, x, axis, begin[:, None] + np.arange(size))
    else:
        windows = g.b.add(Unfold(axis, size, step), x)
    dims = [d for d in range(len(g.shape(windows))) if d != axis + 1]
    return windows if dims[-1] == axis else permute(g, windows, (*dims, axis + 1))


def one_hot(g: Lowering, x: str, classes: int = -1) -> str:
    """Look up the rows of an identity matrix."""
    if classes < 0:
        raise CompileError(
            "one_hot: the number of classes depends on the values", need="num_classes", try_="F.one_hot(x, num_classes)"
        )
    return select_rows(g, g.b.const("unit", np.eye(classes, dtype=np.int64)), 0, x)


def gather(g: Lowering, x: str, axis: int, index: str, sparse_grad: bool = False) -> str:
    axis = g.axis(x, axis)
    return g.b.add(Gather(axis), cut(g, x, g.shape(index), axis), index)


def take_along_dim(g: Lowering, x: str, index: str, axis: int | None = None) -> str:
    if axis is None:
        return gather(g, reshape(g, x, (-1,)), 0, reshape(g, index, (-1,)))
    axis = g.axis(x, axis)
    shapes = [(*s[:axis], 1, *s[axis + 1 :]) for s in (g.shape(x), g.shape(index))]
    full = np.broadcast_shapes(*shapes)
    x, index = (expand_to(g, t, (*full[:axis], g.shape(t)[axis], *full[axis + 1 :])) for t in (x, index))
    return gather(g, x, axis, index)


def scatter(g: Lowering, x: str, axis: int, index: str, source: str | Scalar, reduce: str | None = None) -> str:
    if reduce not in (None, "add", "multiply"):
        raise CompileError(f"scatter: reduce {reduce!r} is not supported", need="no reduce, 'add' or 'multiply'")
    axis = g.axis(x, axis)
    shape = g.shape(index)
    if isinstance(source, str):
        for i, n in enumerate(shape):
            source = slice_(g, source, i, 0, n)
    else:
        source = g.b.const("source", np.full(shape, source, g[x].dtype.numpy))
    op = ScatterReduce(axis, "prod") if reduce == "multiply" else Scatter(axis, reduce == "add")
    part = g.b.add(op, cut(g, x, shape, axis), index, source)
    return put_back(g, x, part)


def scatter_add(g: Lowering, x: str, axis: int, index: str, source: str) -> str:
    return scatter(g, x, axis, index, source, "add")


# --- x[i, :, j], and writing there --------------------------------------------------------------------------


def index(g: Lowering, x: str, indices: Sequence[str | None]) -> str:
    x, axis, at, _ = _one_axis(g, x, indices)
    return select_rows(g, x, axis, at)


def index_put(g: Lowering, x: str, indices: Sequence[str | None], values: str, accumulate: bool = False) -> str:
    rows, axis, at, order = _one_axis(g, x, indices)
    shape = g.shape(rows)
    source = expand_to(g, values, (*shape[:axis], *g.shape(at), *shape[axis + 1 :]))
    put = g.b.add(IndexPut(axis, accumulate), rows, at, source)
    apart = reshape(g, put, tuple(g.shape(x)[d] for d in order))
    return apart if order == tuple(range(len(order))) else permute(g, apart, tuple(int(i) for i in np.argsort(order)))


def index_copy(g: Lowering, x: str, axis: int, at: str, source: str) -> str:
    return g.b.add(IndexPut(g.axis(x, axis)), x, _int32(g, x, g.axis(x, axis), reshape(g, at, (-1,))), source)


def index_add(g: Lowering, x: str, axis: int, at: str, source: str, alpha: Scalar = 1) -> str:
    if alpha != 1:
        source = g.b.add(Mul(), source, g.operand(alpha, source))
    axis = g.axis(x, axis)
    return g.b.add(IndexPut(axis, accumulate=True), x, _int32(g, x, axis, reshape(g, at, (-1,))), source)


def index_fill(g: Lowering, x: str, axis: int, at: str, value: str | Scalar) -> str:
    axis = g.axis(x, axis)
    at = _int32(g, x, axis, reshape(g, at, (-1,)))
    shape = (*g.shape(x)[:axis], g[at].count, *g.shape(x)[axis + 1 :])
    return g.b.add(IndexPut(axis), x, at, expand_to(g, g.operand(value, x), shape))


def _one_axis(g: Lowering, x: str, indices: Sequence[str | None]) -> tuple[str, int, str, tuple[int, ...]]:
    """Combine several indices into one, for all indexed axes merged. Return x in that shape, the axis, the index, and
    the order of x's dimensions; these move to the front if other dimensions are between them."""
    found = _by_axis(g, indices)
    axes = tuple(found)
    rank = len(g.shape(x))
    order = tuple(range(rank))
    if axes != tuple(range(axes[0], axes[-1] + 1)):
        order = (*axes, *(d for d in order if d not in axes))
        x, axes = permute(g, x, order), tuple(range(len(axes)))
    first, shape = axes[0], g.shape(x)
    names = [_int32(g, x, axis, at) for axis, at in zip(axes, found.values(), strict=True)]
    to = np.broadcast_shapes(*map(g.shape, names))
    at, size = expand_to(g, names[0], to), shape[first]
    for axis, name in zip(axes[1:], names[1:], strict=True):
        at = g.b.add(RavelIndex((size, shape[axis])), at, expand_to(g, name, to))
        size *= shape[axis]
    return reshape(g, x, (*shape[:first], size, *shape[axes[-1] + 1 :])), first, at, order


def _by_axis(g: Lowering, indices: Sequence[str | None]) -> dict[int, str]:
    """Return the index of each axis that has one. A mask counts for as many axes as it has dimensions."""
    found: dict[int, str] = {}
    axis = 0
    for name in indices:
        if name is not None and g[name].dtype in (DType.BOOL, DType.UINT8):
            mask = known_value(g, name)
            if mask is None:
                raise CompileError(
                    "index: a computed mask leads to a result of dynamic shape",
                    have=str(g[name]),
                    need="fixed shapes: every byte is planned before the image is built",
                    try_="torch.where(mask, a, b), or x.masked_fill(mask, value)",
                )
            for i, at in enumerate(np.nonzero(mask)):
                found[axis + i] = g.b.const("index", at.astype(np.int32))
            axis += mask.ndim
            continue
        if name is not None:
            found[axis] = name
        axis += 1
    if not found:
        raise CompileError("index: there is no index")
    return found


# --- what they share ----------------------------------------------------------------------------------------


def _int32(g: Lowering, x: str, axis: int, name: str) -> str:
    """Convert an index; a constant one is checked and takes half the flash."""
    known = known_value(g, name)
    return name if known is None else g.b.const("index", _check_indices(g, x, axis, known).astype(np.int32))


def _check_indices(g: Lowering, x: str, axis: int, index: Array) -> Array:
    length = g.shape(x)[axis]
    outside = index[(index < -length) | (index >= length)]
    if outside.size:
        raise CompileError(
            f"index {int(outside.flat[0])} is outside of axis {axis}",
            have=str(g[x]),
            need=f"indices from {-length} to {length - 1}",
        )
    return np.where(index < 0, index + length, index)


def expand_to(g: Lowering, x: str, shape: Ints) -> str:
    return x if g.shape(x) == tuple(shape) else g.b.add(Expand(tuple(shape)), x)


def cut(g: Lowering, x: str, shape: Ints, axis: int) -> str:
    """Slice x to the part that an index of this shape reaches: an index may be smaller in the dimensions that it does
    not select."""
    for i, n in enumerate(shape):
        if i != axis:
            x = slice_(g, x, i, 0, n)
    return x


def put_back(g: Lowering, x: str, part: str) -> str:
    """Return x with its beginning replaced by the part."""
    shorter = [i for i, (n, whole) in enumerate(zip(g.shape(part), g.shape(x), strict=True)) if n != whole]
    if not shorter:
        return part
    axis = shorter[-1]
    if len(shorter) > 1:
        part = put_back(g, slice_(g, x, axis, 0, g.shape(part)[axis]), part)
    return g.b.add(SliceScatter(axis, 0), x, part)


ROWS: dict[str, AtenRow] = {
    **rows("index_select", index_select, IndexSelect),
    **rows("embedding", embedding, IndexSelect),
    **rows("one_hot", one_hot, IndexSelect),
    **rows("unfold", unfold, Unfold),
    **rows("gather", gather, Gather),
    **rows("take_along_dim", take_along_dim, Gather),
    **rows("scatter", scatter, Scatter, ScatterReduce),
    **rows("scatter_add", scatter_add, Scatter),
    **rows("index _unsafe_index", index, IndexSelect, RavelIndex),
    **rows("index_put _unsafe_index_put", index_put, IndexPut, RavelIndex),
    **rows("index_copy", index_copy, IndexPut),
    **rows("index_add", index_add, Mul, IndexPut),
    **rows("index_fill", index_fill, IndexPut),
}
