"""Indices of several axes in one tensor, as GatherND and ScatterND have them."""

from __future__ import annotations

from baretorch.frontends.lowering import Lowering
from baretorch.ops.index import RavelIndex
from baretorch.ops.move import Slice


def index_columns(g: Lowering, indices: str) -> list[str]:
    """Return the index of each axis: the last dimension of the indices counts them."""
    *outer, count = g.shape(indices)
    one = [indices] if count == 1 else [g.b.add(Slice(len(outer), i, i + 1), indices) for i in range(count)]
    return [g.reshape(column, outer) for column in one]


def merge_indexed(g: Lowering, x: str, indices: str) -> tuple[str, str]:
    """Return x with the indexed axes, its first ones, merged into one, and the index into that axis."""
    shape = g.shape(x)
    at, *others = index_columns(g, indices)
    size = shape[0]
    for axis, column in enumerate(others, 1):
        at = g.b.add(RavelIndex((size, shape[axis])), at, column)
        size *= shape[axis]
    return g.reshape(x, (size, *shape[len(others) + 1 :])), at
