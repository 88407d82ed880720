"""Lowers tinygrad's methods that change only shape, order or position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import constants, index, moves, resampling, shapes
from baretorch.frontends.lowering import Build, Ints, Lowering, Scalar
from baretorch.ops.layout import Pad


def flat(first: Any, rest: Sequence[Any]) -> tuple[Any, ...]:
    """Return numbers that were passed one by one, or all in the first argument."""
    return tuple(first) if isinstance(first, (tuple, list)) else (first, *rest)


def _reshape(g: Lowering, x: str, shape: Any, *args: Any) -> str:
    """Reshape; None keeps a size."""
    sizes = flat(shape, args)
    return shapes.reshape(g, x, tuple(g.shape(x)[i] if n is None else n for i, n in enumerate(sizes)))


def _expand(g: Lowering, x: str, shape: Any, *args: Any) -> str:
    return moves.expand(g, x, tuple(-1 if n is None else n for n in flat(shape, args)))


def _permute(g: Lowering, x: str, order: Any, *args: Any) -> str:
    return shapes.permute(g, x, flat(order, args))


def _flip(g: Lowering, x: str, axis: Any, *args: Any) -> str:
    return moves.flip(g, x, flat(axis, args))


def _repeat(g: Lowering, x: str, repeats: Any, *args: Any) -> str:
    counts = flat(repeats, args)
    return moves.repeat(g, x, (1,) * (len(g.shape(x)) - len(counts)) + counts)


def _stack(g: Lowering, x: Any, *args: str, dim: int = 0) -> str:
    return shapes.stack(g, flat(x, args), dim)


def _cat(g: Lowering, x: Any, *args: str, dim: int = 0) -> str:
    return shapes.cat(g, flat(x, args), dim)


def _shrink(g: Lowering, x: str, arg: Sequence[tuple[int, int] | None]) -> str:
    for axis, part in enumerate(arg):
        x = x if part is None else shapes.slice_(g, x, axis, *part)
    return x


def _pad(g: Lowering, x: str, padding: Sequence[Any], mode: str = "constant", value: Scalar = 0.0) -> str:
    """Pad with a flat list, from the last dimension backwards, as in PyTorch, or with a pair or None for each
    dimension. Negative padding cuts off."""
    rank = len(g.shape(x))
    if any(isinstance(p, (tuple, list)) or p is None for p in padding):
        pairs = [(0, 0) if p is None else (int(p[0]), int(p[1])) for p in padding]
    else:
        last = [(int(padding[i]), int(padding[i + 1])) for i in range(0, len(padding), 2)]
        pairs = [(0, 0)] * (rank - len(last)) + last[::-1]
    if mode != "constant":
        while pairs and pairs[0] == (0, 0):
            pairs.pop(0)
        return moves.pad(g, x, [n for pair in reversed(pairs) for n in pair], mode)
    for axis, (before, after) in enumerate(pairs):
        x = shapes.slice_(g, x, axis, max(0, -before), g.shape(x)[axis] + min(0, after))
    more = tuple((max(0, before), max(0, after)) for before, after in pairs)
    return g.b.add(Pad(more, float(value)), x) if any(map(any, more)) else x


def _roll(g: Lowering, x: str, shifts: int | Ints, dims: int | Ints | None = None) -> str:
    return moves.roll(g, x, flat(shifts, ()), () if dims is None else flat(dims, ()))


def _getitem(g: Lowering, x: str, indices: Any) -> str:
    """Index with numbers, slices, None and …, then with lists and tensors of indices, as in PyTorch."""
    items = indices if isinstance(indices, tuple) else (indices,)
    if isinstance(indices, list) and not all(isinstance(i, int) for i in indices):
        items = tuple(indices)
    if Ellipsis not in items:
        items = (*items, Ellipsis)
    at = items.index(Ellipsis)
    taken = sum(i is not None and i is not Ellipsis for i in items)
    items = (*items[:at], *(slice(None),) * (len(g.shape(x)) - taken), *items[at + 1 :])
    found = list[str | None]()
    for item in items:
        axis = len(found)
        if isinstance(item, int):
            x = shapes.select(g, x, axis, item)
        elif item is None:
            x = shapes.unsqueeze(g, x, axis)
            found.append(None)
        elif isinstance(item, slice):
            x = moves.take_range(g, x, axis, range(*item.indices(g.shape(x)[axis])))
            found.append(None)
        else:
            found.append(item if isinstance(item, str) else g.b.const("index", np.array(item, np.int32)))
    return index.index(g, x, found) if any(found) else x


def _interpolate(g: Lowering, x: str, size: Ints, mode: str = "linear", align_corners: bool = False) -> str:
    """Resample the last dimensions; those before are the batch and its channels, which may be missing."""
    have, dims = g.shape(x), len(size)
    if dims > 2:
        raise CompileError(f"interpolate over {dims} dimensions is not supported", need="at most 2")
    image, scales = shapes.reshape(g, x, (1, -1, *have[-dims:])), (None,) * dims
    if mode == "linear":
        y = resampling.linear(g, image, size, align_corners, *scales)
    else:
        y = (resampling.nearest if mode == "nearest" else resampling.nearest_exact)(g, image, size, *scales)
    return shapes.reshape(g, y, (*have[:-dims], *size))


def _same(g: Lowering, x: str, *_: Any, **named: Any) -> str:
    return x


ROWS: Mapping[str, Build] = {
    "reshape": _reshape,
    "view": _reshape,
    "expand": _expand,
    "permute": _permute,
    "transpose": lambda g, x, dim0=1, dim1=0: shapes.transpose(g, x, dim0, dim1),
    "flatten": shapes.flatten,
    "unflatten": shapes.unflatten,
    "squeeze": shapes.squeeze,
    "unsqueeze": shapes.unsqueeze,
    "flip": _flip,
    "pad": _pad,
    "shrink": _shrink,
    "stack": _stack,
    "cat": _cat,
    "split": shapes.split,
    "chunk": shapes.chunk,
    "repeat": _repeat,
    "repeat_interleave": moves.repeat_interleave,
    "roll": _roll,
    "unfold": index.unfold,
    "gather": index.gather,
    "one_hot": index.one_hot,
    "triu": constants.triu,
    "tril": constants.tril,
    "diagonal": constants.diagonal,
    "interpolate": _interpolate,
    "__getitem__": _getitem,
    "contiguous": _same,
    "contiguous_backward": _same,
    "detach": _same,
    "clone": _same,
    "to": _same,
}
