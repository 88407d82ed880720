"""Cases of operators that move elements about."""

from __future__ import annotations

from math import inf, nan

import torch
import torch.nn.functional as F

from baretorch.ir.graph import Shape
from baretorch.ops.layout import Expand, Flip, Pad, Permute, Reshape, Unfold
from baretorch.ops.move import Cat, Copy, Slice, SliceScatter
from tests.ops.case import Case, counted, normal


def permute(shape: Shape, dims: tuple[int, ...], dtype: str = "float32") -> Case:
    return Case(f"permute {dtype} {shape} to {dims}", Permute(dims), counted(dtype, shape), lambda x: x.permute(dims))


def expand(shape: Shape, to: Shape, dtype: str = "float32") -> Case:
    return Case(f"expand {dtype} {shape} to {to}", Expand(to), counted(dtype, shape), lambda x: x.expand(to))


def unfold(shape: Shape, axis: int, size: int, step: int, dtype: str = "float32") -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return x.unfold(axis, size, step).movedim(-1, axis + 1)

    name = f"unfold {dtype} {shape}, {size} of axis {axis} by {step}"
    return Case(name, Unfold(axis, size, step), counted(dtype, shape), run)


def flip(shape: Shape, axes: tuple[int, ...], dtype: str = "float32") -> Case:
    return Case(f"flip {dtype} {shape} in {axes}", Flip(axes), counted(dtype, shape), lambda x: x.flip(axes))


def reshape(shape: Shape, to: Shape) -> Case:
    return Case(f"reshape {shape} to {to}", Reshape(to), normal(shape), lambda x: x.reshape(to))


def pad(name: str, op: Pad, shape: Shape, dtype: str = "float32") -> Case:
    last_first = [n for pair in reversed(op.padding) for n in pair]
    return Case(f"pad {dtype} {name}", op, counted(dtype, shape), lambda x: F.pad(x, last_first, value=op.value))


def slice_(axis: int, start: int, stop: int, step: int, shape: Shape, dtype: str = "float32") -> Case:
    part = (slice(None),) * axis + (slice(start, stop, step),)
    name = f"slice {dtype} {shape} axis {axis} {start}:{stop}:{step}"
    return Case(name, Slice(axis, start, stop, step), counted(dtype, shape), lambda x: x[part])


def cat(axis: int, *shapes: Shape, dtype: str = "float32") -> Case:
    name = f"cat {dtype} axis {axis} {' '.join(map(str, shapes))}"
    return Case(name, Cat(axis), counted(dtype, *shapes), lambda *xs: torch.cat(xs, axis))


def slice_scatter(axis: int, start: int, step: int, shape: Shape, source: Shape, dtype: str = "float32") -> Case:
    stop = start + step * source[axis]
    return Case(
        f"slice_scatter {dtype} {source} into {shape} axis {axis} from {start} by {step}",
        SliceScatter(axis, start, step),
        counted(dtype, shape, source),
        lambda x, y: x.slice_scatter(y, axis, start, stop, step),
    )


LAYOUT = (
    permute((3, 4), (1, 0)),
    permute((5,), (0,)),
    permute((), ()),
    permute((1, 4, 5, 3), (0, 3, 1, 2)),
    permute((2, 3, 4, 5), (0, 2, 3, 1)),
    permute((2, 1, 3), (1, 2, 0)),
    permute((2, 3, 4, 2, 3, 2), (5, 4, 3, 2, 1, 0)),
    permute((2, 2, 2, 2, 2, 2), (1, 0, 3, 2, 5, 4)),
    permute((2, 3, 1, 2, 2, 2, 2), (6, 1, 2, 0, 3, 4, 5)),
    *(permute((3, 5, 2), (2, 0, 1), dtype) for dtype in ("int8", "bool", "int16", "int32", "int64")),
    permute((3, 4, 8), (1, 0, 2), "int8"),  # words
    permute((3, 4, 6), (1, 0, 2), "int8"),  # half words
    permute((0, 3), (1, 0)),
    expand((2, 1, 3), (2, 4, 3)),
    expand((3, 1), (2, 3, 5)),
    expand((1,), (7,)),
    expand((), (2, 3)),
    expand((2, 1, 2, 1, 2, 1), (2, 2, 2, 3, 2, 2)),
    *(expand((3, 1, 2), (3, 3, 2), dtype) for dtype in ("bool", "int16", "int64")),
    unfold((9,), 0, 4, 2),
    unfold((2, 11), 1, 5, 3),
    unfold((7, 3), 0, 3, 1),
    unfold((2, 6, 3), 1, 4, 1),
    *(unfold((3, 10), 1, 4, 3, dtype) for dtype in ("int8", "int16", "int64")),
    flip((5,), (0,)),
    flip((2, 3, 4), (0, 2)),
    flip((2, 3, 4), (1,)),
    flip((1, 3), (0, 1)),
    flip((2, 2, 2, 2, 2, 2), (0, 2, 5)),
    *(flip((3, 5), (0, 1), dtype) for dtype in ("int8", "int16", "int64")),
    reshape((2, 3, 4), (4, 6)),
    reshape((1,), ()),
    pad("none", Pad(((0, 0),), 1.0), (4,)),
    pad("image", Pad(((0, 0), (1, 2), (3, 0), (0, 0)), 0.0), (2, 3, 4, 2)),
    pad("every side", Pad(((1, 0), (2, 1), (1, 2), (1, 1)), -inf), (2, 3, 2, 2)),
    pad("crop", Pad(((-1, 2), (1, -2)), 0.5), (4, 5)),
    pad("crop all", Pad(((-1, -1), (-1, 0)), 0.5), (3, 2)),
    pad("six dimensions", Pad(((0, 0), (0, 0), (1, 1), (0, 0), (1, 0), (0, 0)), nan), (2, 1, 2, 3, 1, 2)),
    pad("none of it is left", Pad(((5, -4), (0, 0)), 2.0), (4, 3)),
    *(pad("around", Pad(((1, 0), (1, 2)), -3.0), (3, 5), dtype) for dtype in ("int8", "int16", "int32", "int64")),
    pad("around", Pad(((1, 0), (1, 2)), 1.0), (3, 5), "bool"),
)

MOVE = (
    slice_(0, 1, 3, 1, (4, 5)),  # a view
    slice_(1, 1, 4, 1, (3, 5, 2)),
    slice_(1, 0, 5, 2, (3, 5, 2)),
    slice_(2, 1, 7, 3, (2, 3, 8)),
    slice_(0, 2, 2, 1, (4, 5)),  # nothing
    slice_(1, 1, 2, 1, (1, 3, 5), "int64"),
    slice_(1, 1, 4, 1, (3, 5), "bool"),
    slice_(0, 1, 3, 1, (4, 3), "int8"),  # would be a view that is not word-aligned
    slice_(1, 1, 3, 1, (2, 3), "int32"),
    cat(0, (2, 3), (1, 3), (4, 3)),
    cat(1, (2, 3), (2, 1)),
    cat(2, (2, 2, 3), (2, 2, 1), (2, 2, 2)),
    cat(0, (3,), (0,), (2,)),
    cat(0, (3,), (2,), dtype="bool"),
    cat(1, (2, 3), (2, 2), dtype="int64"),
    slice_scatter(0, 1, 1, (4, 3), (2, 3)),
    slice_scatter(1, 1, 2, (2, 5, 3), (2, 2, 3)),
    slice_scatter(2, 0, 3, (2, 2, 7), (2, 2, 3), "int64"),
    slice_scatter(1, 1, 1, (3, 4), (3, 2), "bool"),
    slice_scatter(0, 0, 1, (3,), (0,)),
    Case("copy", Copy(), normal((3, 4)), lambda x: x.clone()),
    Case("copy int32", Copy(), counted("int32", (5,)), lambda x: x.clone()),
)

CASES = (*LAYOUT, *MOVE)
