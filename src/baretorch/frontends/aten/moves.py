"""Rows of the ATen table: repeating, reversing, shifting and padding, and writing into parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.index import take
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.aten.shapes import cat, constant_pad, reshape, slice_, transpose, unsqueeze
from baretorch.frontends.lowering import Ints, Lowering, Scalar
from baretorch.ir.graph import Array
from baretorch.ops.index import IndexSelect
from baretorch.ops.layout import Expand, Flip, Pad
from baretorch.ops.move import Cat, Slice, SliceScatter

# --- repeating ----------------------------------------------------------------------------------------------


def expand(g: Lowering, x: str, sizes: Ints, implicit: bool = False) -> str:
    front = len(sizes) - len(g.shape(x))
    own = (1,) * front + g.shape(x)
    shape = tuple(n if to == -1 else int(to) for n, to in zip(own, sizes, strict=True))
    if prod(shape) == g[x].count:
        return reshape(g, x, shape)
    return g.b.add(Expand(shape), x)


def expand_as(g: Lowering, x: str, other: str) -> str:
    return expand(g, x, g.shape(other))


def broadcast_tensors(g: Lowering, tensors: Sequence[str]) -> tuple[str, ...]:
    shape = np.broadcast_shapes(*map(g.shape, tensors))
    return tuple(expand(g, t, shape) for t in tensors)


def meshgrid(g: Lowering, tensors: Sequence[str], indexing: str = "ij") -> tuple[str, ...]:
    """Expand each vector along its own dimension; "xy" swaps the first two dimensions."""
    counts = [g[t].count for t in tensors]
    grids = []
    for i, t in enumerate(tensors):
        column = reshape(g, t, tuple(n if j == i else 1 for j, n in enumerate(counts)))
        grids.append(expand(g, column, counts))
    return tuple(transpose(g, t, 0, 1) for t in grids) if indexing == "xy" and len(grids) > 1 else tuple(grids)


def repeat(g: Lowering, x: str, repeats: Ints) -> str:
    """Repeat dimensions. A dimension of n elements that is repeated r times is expanded as [r, n], then reshaped to
    n * r."""
    own = (1,) * (len(repeats) - len(g.shape(x))) + g.shape(x)
    apart = reshape(g, x, tuple(d for n in own for d in (1, n)))
    full = expand(g, apart, tuple(d for r, n in zip(repeats, own, strict=True) for d in (r, n)))
    return reshape(g, full, tuple(r * n for r, n in zip(repeats, own, strict=True)))


def tile(g: Lowering, x: str, repeats: Ints) -> str:
    return repeat(g, x, (1,) * (len(g.shape(x)) - len(repeats)) + tuple(repeats))


def repeat_interleave(
    g: Lowering, x: str, repeats: int | str, axis: int | None = None, output_size: int | None = None
) -> str:
    if axis is None:
        x, axis = reshape(g, x, (-1,)), 0
    axis = g.axis(x, axis)
    shape = g.shape(x)
    if isinstance(repeats, str):
        counts = g.constant(repeats, "repeat_interleave: repeats")
        return take(g, x, axis, np.repeat(np.arange(shape[axis]), counts))
    full = expand(g, unsqueeze(g, x, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return reshape(g, full, (*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :]))


# --- reversing and shifting ---------------------------------------------------------------------------------


def flip(g: Lowering, x: str, axes: Ints) -> str:
    some = tuple(a for a in sorted(g.axis(x, a) for a in axes) if g.shape(x)[a] > 1)
    return g.b.add(Flip(some), x) if some else x


def take_range(g: Lowering, x: str, axis: int, places: range) -> str:
    """Take the entries at these places of an axis; backwards if the step is negative."""
    if not places:
        return g.b.add(Slice(axis, 0, 0, 1), x)
    if places.step > 0:
        return slice_(g, x, axis, places[0], places[-1] + 1, places.step)
    return flip(g, slice_(g, x, axis, places[-1], places[0] + 1, -places.step), (axis,))


def rot90(g: Lowering, x: str, k: int = 1, axes: Ints = (0, 1)) -> str:
    a, b = axes
    if k % 4 == 2:
        return flip(g, x, (a, b))
    if k % 4 == 0:
        return x
    return transpose(g, flip(g, x, (b if k % 4 == 1 else a,)), a, b)


def roll(g: Lowering, x: str, shifts: Ints, axes: Ints = ()) -> str:
    if not axes:
        return reshape(g, roll(g, reshape(g, x, (-1,)), shifts, (0,)), g.shape(x))
    for shift, axis in zip(shifts, axes, strict=True):
        axis = g.axis(x, axis)
        length = g.shape(x)[axis]
        cut = -shift % length if length else 0
        if cut:
            x = cat(g, [slice_(g, x, axis, cut), slice_(g, x, axis, 0, cut)], axis)
    return x


# --- padding ------------------------------------------------------------------------------------------------


def pad(g: Lowering, x: str, padding: Ints, mode: str = "constant", value: Scalar | None = None) -> str:
    if mode == "constant":
        return constant_pad(g, x, padding, value or 0)
    return _pad_from_inside(g, x, padding, mode)


def _pad_from_inside(g: Lowering, x: str, padding: Ints, mode: str) -> str:
    """Pad one axis after the other, the last first, by selecting existing entries that are known ahead of time."""
    for i in range(len(padding) // 2):
        axis = len(g.shape(x)) - 1 - i
        before, after = int(padding[2 * i]), int(padding[2 * i + 1])
        x = take(g, x, axis, _source_places(np.arange(-before, g.shape(x)[axis] + after), g.shape(x)[axis], mode))
    return x


def _source_places(at: Array, length: int, mode: str) -> Array:
    """Return the entry of 0 … length - 1 for each of these places."""
    if mode == "reflect":
        last = length - 1
        return np.asarray(last - np.abs(last - np.abs(at)))
    if mode == "replicate":
        return np.asarray(np.clip(at, 0, length - 1))
    if mode == "circular":  # of the rest, if a negative padding crops
        first, end = max(int(at[0]), 0), min(int(at[-1]) + 1, length)
        return np.asarray(first + (at - first) % (end - first))
    raise CompileError(f"pad: no mode is called {mode!r}", need="constant, reflect, replicate or circular")


# --- writing into a part, as x[:, 0] = y arrives ------------------------------------------------------------


def slice_scatter(
    g: Lowering, x: str, source: str, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1
) -> str:
    axis = g.axis(x, axis)
    length = g.shape(x)[axis]
    begin, end, _ = slice(start, stop).indices(length)
    source = expand(g, source, (*g.shape(x)[:axis], len(range(begin, end, step)), *g.shape(x)[axis + 1 :]))
    if g.shape(source) == g.shape(x):
        return source
    return g.b.add(SliceScatter(axis, begin, step), x, source) if g[source].count else x


def select_scatter(g: Lowering, x: str, source: str, axis: int, index: int) -> str:
    axis = g.axis(x, axis)
    at = index + g.shape(x)[axis] if index < 0 else index
    return slice_scatter(g, x, unsqueeze(g, source, axis), axis, at, at + 1)


def copy(g: Lowering, x: str, source: str, non_blocking: bool = False) -> str:
    """Return the new value of x: the source, in x's shape."""
    if g[source].dtype is not g[x].dtype:
        raise CompileError(
            "copy_: the source has another type",
            have=f"{g[x]}, {g[source]}",
            need=f"a source of {g[x].dtype.label}",
            try_=f"source.to(torch.{g[x].dtype.label}) in the model",
        )
    return expand(g, source, g.shape(x))


def fill(g: Lowering, x: str, value: str | Scalar) -> str:
    return expand(g, g.operand(value, x), g.shape(x))


ROWS: dict[str, AtenRow] = {
    **rows("expand broadcast_to", expand, Expand),
    **rows("expand_as", expand_as, Expand),
    **rows("broadcast_tensors", broadcast_tensors, Expand),
    **rows("meshgrid", meshgrid, Expand),
    **rows("repeat", repeat, Expand),
    **rows("tile", tile, Expand),
    **rows("repeat_interleave", repeat_interleave, Expand, IndexSelect),
    **rows("flip", flip, Flip),
    **rows("rot90", rot90, Flip),
    **rows("roll", roll, Slice, Cat),
    **rows("pad", pad, Pad, IndexSelect),
    **rows(
        "reflection_pad1d reflection_pad2d reflection_pad3d",
        lambda g, x, padding: _pad_from_inside(g, x, padding, "reflect"),
        IndexSelect,
    ),
    **rows(
        "replication_pad1d replication_pad2d replication_pad3d",
        lambda g, x, padding: _pad_from_inside(g, x, padding, "replicate"),
        IndexSelect,
    ),
    **rows("slice_scatter", slice_scatter, SliceScatter),
    **rows("select_scatter", select_scatter, SliceScatter),
    **rows("copy", copy, Expand),
    **rows("fill", fill, Expand),
}
