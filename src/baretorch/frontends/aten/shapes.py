"""Rows of the ATen table: operators that change only shape, order or position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.promotion import promote
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Ints, Lowering, Scalar
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.move import Cat, Slice


def reshape(g: Lowering, x: str, shape: Ints) -> str:
    if isinstance(shape, str):
        raise CompileError(
            f"view: the bits of {g[x].dtype.label} as {shape} are not supported",
            need="a view of another shape",
            try_="x.to(dtype), which converts values",
        )
    known = int(np.prod([d for d in shape if d != -1], initial=1))
    full = tuple(g[x].count // known if d == -1 else int(d) for d in shape)
    return x if full == g.shape(x) else g.b.add(Reshape(full), x)


def flatten(g: Lowering, x: str, start: int = 0, end: int = -1) -> str:
    shape = g.shape(x)
    start, end = g.axis(x, start), g.axis(x, end)
    return reshape(g, x, (*shape[:start], int(np.prod(shape[start : end + 1])), *shape[end + 1 :]))


def unflatten(g: Lowering, x: str, axis: int, sizes: Ints) -> str:
    shape, axis = g.shape(x), g.axis(x, axis)
    known = int(np.prod([d for d in sizes if d != -1]))
    full = (shape[axis] // known if d == -1 else d for d in sizes)
    return reshape(g, x, (*shape[:axis], *full, *shape[axis + 1 :]))


def squeeze(g: Lowering, x: str, dims: int | Ints | None = None) -> str:
    shape = g.shape(x)
    gone = set(range(len(shape)) if dims is None else _axes(g, x, dims))
    return reshape(g, x, tuple(d for i, d in enumerate(shape) if i not in gone or d != 1))


def unsqueeze(g: Lowering, x: str, dim: int) -> str:
    shape = list(g.shape(x))
    shape.insert(dim + len(shape) + 1 if dim < 0 else dim, 1)
    return reshape(g, x, shape)


def permute(g: Lowering, x: str, dims: Ints) -> str:
    return g.permute(x, tuple(g.axis(x, d) for d in dims))


def transpose(g: Lowering, x: str, a: int, b: int) -> str:
    if not g.shape(x):  # PyTorch lets a single number have an axis 0
        return x
    dims = list(range(len(g.shape(x))))
    a, b = g.axis(x, a), g.axis(x, b)
    dims[a], dims[b] = dims[b], dims[a]
    return g.permute(x, dims)


def t(g: Lowering, x: str) -> str:
    return x if len(g.shape(x)) < 2 else g.permute(x, (1, 0))


def reverse(g: Lowering, x: str) -> str:
    """Lower x.T."""
    return g.permute(x, tuple(reversed(range(len(g.shape(x))))))


def movedim(g: Lowering, x: str, source: int | Ints, destination: int | Ints) -> str:
    axes = range(len(g.shape(x)))
    goes = dict(zip(_axes(g, x, destination), _axes(g, x, source), strict=True))
    rest = iter(d for d in axes if d not in goes.values())
    return g.permute(x, tuple(goes[i] if i in goes else next(rest) for i in axes))


def _axes(g: Lowering, x: str, dims: int | Ints) -> list[int]:
    return [g.axis(x, d) for d in ([dims] if isinstance(dims, int) else dims)]


def as_strided(g: Lowering, x: str, *_: Any) -> str:
    raise CompileError(
        "as_strided is not supported: its result depends on the memory layout of a tensor",
        have=str(g[x]),
        try_="x.unfold(), x.reshape(), x.diagonal() or slices",
    )


def constant_pad(g: Lowering, x: str, padding: Ints, value: Scalar = 0) -> str:
    """Lower constant padding. PyTorch lists (before, after) from the last dimension backwards."""
    rank = len(g.shape(x))
    pairs = [(0, 0)] * rank
    for i in range(len(padding) // 2):
        pairs[rank - 1 - i] = (int(padding[2 * i]), int(padding[2 * i + 1]))
    return g.b.add(Pad(tuple(pairs), float(value)), x) if any(padding) else x


def same(g: Lowering, x: str, *_: Any) -> str:
    return x


def dropout(g: Lowering, x: str, p: float, train: bool) -> str:
    if train:
        raise CompileError(
            f"dropout with p={p:g} is in training mode: it drops values at random",
            need="a dropout that is off in eval mode, in which the model is compiled",
            try_=[
                "nn.functional.dropout(x, training=self.training), or an nn.Dropout layer",
                "model.eval() before torch.export.export, if it is a .pt2",
            ],
        )
    return x


def cat(g: Lowering, tensors: Sequence[str], axis: int = 0) -> str:
    some = [t for t in tensors if g.shape(t) != (0,)]  # PyTorch lets an empty vector pass for any shape
    return some[0] if len(some) == 1 else g.b.add(Cat(g.axis(some[0], axis)), *promote(g, *some))


def stack(g: Lowering, tensors: Sequence[str], axis: int = 0) -> str:
    at = axis + len(g.shape(tensors[0])) + 1 if axis < 0 else axis
    return cat(g, [unsqueeze(g, t, at) for t in tensors], at)


def slice_(g: Lowering, x: str, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1) -> str:
    axis = g.axis(x, axis)
    length = g.shape(x)[axis]
    begin, end, _ = slice(start, stop).indices(length)
    if (begin, end, step) == (0, length, 1):
        return x
    return g.b.add(Slice(axis, begin, max(begin, end), step), x)


def select(g: Lowering, x: str, axis: int, index: int) -> str:
    axis = g.axis(x, axis)
    at = index + g.shape(x)[axis] if index < 0 else index
    return squeeze(g, slice_(g, x, axis, at, at + 1), axis)


def split(g: Lowering, x: str, sizes: int | Ints, axis: int = 0) -> tuple[str, ...]:
    axis = g.axis(x, axis)
    length = g.shape(x)[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, length - at) for at in range(0, length, sizes)]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(slice_(g, x, axis, at, at + n) for at, n in zip(starts, sizes, strict=True))


def chunk(g: Lowering, x: str, chunks: int, axis: int = 0) -> tuple[str, ...]:
    return split(g, x, -(-g.shape(x)[g.axis(x, axis)] // chunks), axis)


def unbind(g: Lowering, x: str, axis: int = 0) -> tuple[str, ...]:
    return tuple(select(g, x, axis, i) for i in range(g.shape(x)[g.axis(x, axis)]))


ROWS: dict[str, AtenRow] = {
    **rows("view reshape _unsafe_view", reshape, Reshape),
    **rows("flatten", flatten, Reshape),
    **rows("squeeze", squeeze, Reshape),
    **rows("unsqueeze", unsqueeze, Reshape),
    **rows("permute", permute, Permute),
    **rows("transpose swapaxes swapdims", transpose, Permute),
    **rows("t", t, Permute),
    **rows("constant_pad_nd", constant_pad, Pad),
    **rows("cat concat", cat, Cat),
    **rows("stack", stack, Cat),
    **rows("slice", slice_, Slice),
    **rows("narrow", lambda g, x, axis, start, length: slice_(g, x, axis, start, start + length), Slice),
    **rows("select", select, Slice),
    **rows("split split_with_sizes", split, Slice),
    **rows("chunk", chunk, Slice),
    **rows("unbind", unbind, Slice),
    **rows("view_as reshape_as", lambda g, x, other: reshape(g, x, g.shape(other)), Reshape),
    **rows("unflatten", unflatten, Reshape),
    **rows("movedim moveaxis", movedim, Permute),
    **rows("numpy_T", reverse, Permute),
    **rows("mT adjoint", lambda g, x: transpose(g, x, -2, -1), Permute),
    **rows("as_strided", as_strided, refused=True),
    **rows("clone contiguous detach alias lift_fresh", same),
    **rows("dropout", dropout),
}
