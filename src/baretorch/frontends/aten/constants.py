"""Rows of the ATen table: tensors that are known ahead of time, and parts of matrices for masks."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import permute, reshape, slice_
from baretorch.frontends.lowering import DTYPES, Ints, Lowering, Scalar, known_value
from baretorch.ir.graph import Array, DType
from baretorch.ops.index import IndexPut
from baretorch.ops.move import Slice


def add_constant(g: Lowering, name: str, data: Array) -> str:
    """Return a constant, if its type is supported."""
    if DType.of(data.dtype.name) is None:
        raise CompileError(f"{name}: {data.dtype.name} is not supported", need=DTYPES)
    return g.b.const(name, data)


def full(g: Lowering, shape: Ints, value: Scalar, dtype: str | None = None, *_: Any) -> str:
    return add_constant(g, "full", np.full(tuple(shape), value, dtype or _type_of(value)))


def full_like(g: Lowering, x: str, value: Scalar, dtype: str | None = None, *_: Any) -> str:
    return full(g, g.shape(x), value, dtype or g[x].dtype.label)


def new_full(g: Lowering, x: str, shape: Ints, value: Scalar, dtype: str | None = None, *_: Any) -> str:
    return full(g, shape, value, dtype or g[x].dtype.label)


def arange(g: Lowering, *args: Any) -> str:
    """Lower (end), (start, end) or (start, end, step), then dtype and four arguments that do not matter."""
    numbers, dtype = args[:-4], args[-4] or _type_of(*args[:-4])
    if np.dtype(dtype).kind != "f":
        numbers = tuple(int(n) for n in numbers)  # as PyTorch does, before it counts
    return add_constant(g, "arange", np.arange(*numbers, dtype=dtype))


def eye(g: Lowering, *args: Any) -> str:
    sizes, dtype = args[:-4], args[-4]
    return add_constant(g, "eye", np.eye(*sizes).astype(dtype or "float32"))


def _type_of(*numbers: Scalar) -> str:
    if any(isinstance(n, float) for n in numbers):
        return "float32"
    return "bool" if isinstance(numbers[0], bool) else "int64"


# --- triangles and diagonals ----------------------------------------------------------------------------------


def tril(g: Lowering, x: str, diagonal: int = 0) -> str:
    rows, columns = g.shape(x)[-2:]
    return _triangle(g, x, np.tri(rows, columns, diagonal, bool))


def triu(g: Lowering, x: str, diagonal: int = 0) -> str:
    rows, columns = g.shape(x)[-2:]
    return _triangle(g, x, ~np.tri(rows, columns, diagonal - 1, bool))


def _triangle(g: Lowering, x: str, mask: Array) -> str:
    """Write zeros where the mask is false, over NaN and infinity too."""
    value, shape = known_value(g, x), g.shape(x)
    if value is not None:
        return g.b.const("triangle", np.where(mask, value, np.zeros((), value.dtype)))
    (zero,) = np.nonzero(~mask.reshape(-1))
    if not zero.size:
        return x
    rows = reshape(g, x, (*shape[:-2], mask.size))
    source = g.b.const("zeros", np.zeros((*shape[:-2], zero.size), g[x].dtype.numpy))
    put = g.b.add(IndexPut(len(shape) - 2), rows, g.b.const("index", zero.astype(np.int32)), source)
    return reshape(g, put, shape)


def diagonal(g: Lowering, x: str, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    """Take every (columns + 1)th element of the flattened matrix as the last axis."""
    a, b = g.axis(x, dim1), g.axis(x, dim2)
    others = tuple(d for d in range(len(g.shape(x))) if d not in (a, b))
    if (*others, a, b) != tuple(range(len(g.shape(x)))):
        x = permute(g, x, (*others, a, b))
    *outer, rows, columns = g.shape(x)
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = max(offset, 0) + max(-offset, 0) * columns
    flat = reshape(g, x, (*outer, rows * columns))
    stop = start + (count - 1) * (columns + 1) + 1 if count else start
    return slice_(g, flat, len(outer), start, stop, columns + 1) if prod(g.shape(flat)) else flat


ROWS: dict[str, AtenRow] = {
    **rows("full", full),
    **rows("tril", tril, IndexPut),
    **rows("triu", triu, IndexPut),
    **rows("diagonal", diagonal, Slice),
    **rows("arange", arange),
    **rows("eye", eye),
    **rows("full_like", full_like),
    **rows("new_full", new_full),
    **rows("zeros empty", lambda g, shape, dtype=None, *_: full(g, shape, 0, dtype or "float32")),
    **rows("ones", lambda g, shape, dtype=None, *_: full(g, shape, 1, dtype or "float32")),
    **rows("zeros_like", lambda g, x, dtype=None, *_: full_like(g, x, 0, dtype)),
    **rows("ones_like", lambda g, x, dtype=None, *_: full_like(g, x, 1, dtype)),
    **rows("new_zeros", lambda g, x, shape, dtype=None, *_: new_full(g, x, shape, 0, dtype)),
    **rows("new_ones", lambda g, x, shape, dtype=None, *_: new_full(g, x, shape, 1, dtype)),
    **rows("scalar_tensor", lambda g, value, dtype=None, *_: full(g, (), value, dtype or "float32")),
}
