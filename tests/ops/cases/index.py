"""Cases of operators that choose elements by tensors of indices."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ir.graph import Array, Shape
from baretorch.ops.index import Gather, IndexPut, IndexSelect, RavelIndex, Scatter
from tests.ops.case import Case, Inputs


def indexed(size: int, index: Shape, dtype: str, index_dtype: str, *others: Shape, unique: bool = False) -> Inputs:
    """The index after the first of the others; with `unique`, none occurs twice along a row."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        first, *rest = (rng.integers(0, 100, s).astype(dtype) for s in others)
        count = int(np.prod(index))
        at = rng.permutation(size)[:count] if unique else rng.integers(0, size, count)
        return first, at.reshape(index).astype(index_dtype), *rest

    return build


def select(axis: int, x: Shape, index: Shape, dtype: str = "float32", by: str = "int64") -> Case:
    def pytorch(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return x.index_select(axis, at.reshape(-1)).reshape((*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]))

    name = f"index_select {dtype} {x} axis {axis} by {by} {index}"
    return Case(name, IndexSelect(axis), indexed(x[axis], index, dtype, by, x), pytorch)


def gather(axis: int, x: Shape, count: int, dtype: str = "float32", by: str = "int64") -> Case:
    index = (*x[:axis], count, *x[axis + 1 :])
    name = f"gather {dtype} {x} axis {axis} by {by} {count}"
    return Case(
        name,
        Gather(axis),
        indexed(x[axis], index, dtype, by, x),
        lambda x, at: x.gather(axis, at.long()),
    )


def put(axis: int, x: Shape, index: Shape, dtype: str = "float32", by: str = "int64", add: bool = False) -> Case:
    source = (*x[:axis], *index, *x[axis + 1 :])
    name = f"index_put {dtype} {x} axis {axis} by {by} {index}{' adding' if add else ''}"
    at = (slice(None),) * axis

    def pytorch(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        flat = source.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
        if add:
            return x.index_add(axis, index.reshape(-1), flat)
        y = x.clone()
        y[(*at, index.reshape(-1).long())] = flat
        return y

    return Case(name, IndexPut(axis, add), indexed(x[axis], index, dtype, by, x, source, unique=not add), pytorch)


def scatter(axis: int, x: Shape, count: int, dtype: str = "float32", by: str = "int64", add: bool = False) -> Case:
    source = (*x[:axis], count, *x[axis + 1 :])
    name = f"scatter {dtype} {x} axis {axis} by {by} {count}{' adding' if add else ''}"

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        first, rest = (rng.integers(0, 100, s).astype(dtype) for s in (x, source))
        order = rng.permuted(np.broadcast_to(np.arange(x[axis]), (*x[:axis], *x[axis + 1 :], x[axis])), axis=-1)
        at = rng.integers(0, x[axis], source) if add else np.moveaxis(order[..., :count], -1, axis)
        return first, np.ascontiguousarray(at).astype(by), rest

    def pytorch(x: torch.Tensor, at: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter_add(axis, at.long(), source) if add else x.scatter(axis, at.long(), source)

    return Case(name, Scatter(axis, add), build, pytorch)


def outside(by: str) -> Case:
    """PyTorch raises; here the nearest element that exists is taken."""
    index = np.array([-100, -4, -3, -1, 0, 2, 3, 100], by)
    x = np.arange(3, dtype=np.float32)
    return Case(
        f"index_select outside by {by}",
        IndexSelect(0),
        lambda rng: (x, index),
        lambda x, at: x[torch.tensor([0, 0, 0, 2, 0, 2, 2, 2])],
    )


def ravel(a: str, b: str) -> Case:
    return Case(
        f"ravel_index {a} {b}",
        RavelIndex((3, 5)),
        lambda rng: (np.array([[0, 2], [-1, 1]], a), np.array([[4, 0], [-5, 9]], b)),
        lambda i, j: torch.tensor([[4, 10], [10, 9]], dtype=torch.int32),
    )


CASES = (
    select(0, (5, 3), (4,)),
    select(0, (5, 3), (4,), by="int32"),
    select(1, (2, 5, 3), (2, 3)),
    select(2, (2, 3, 4), (7,)),
    select(0, (5,), ()),
    select(1, (2, 1), (1,)),
    *(select(1, (2, 5, 3), (4,), dtype) for dtype in ("int8", "bool", "int16", "int32", "int64")),
    select(0, (5, 8), (3,), "int8"),
    select(0, (5, 3), (0,)),
    outside("int32"),
    outside("int64"),
    gather(0, (4, 3), 2),
    gather(1, (2, 4, 3), 6, by="int32"),
    gather(2, (2, 1, 5), 1),
    *(gather(1, (3, 4), 2, dtype) for dtype in ("int8", "int16", "int64")),
    put(0, (5, 3), (2,)),
    put(1, (2, 5, 3), (2, 2), by="int32"),
    put(0, (7,), (3,), add=True),
    put(1, (2, 3, 2), (5,), by="int32", add=True),
    put(0, (3, 2), (6,), "int32", add=True),
    *(put(1, (2, 5, 3), (3,), dtype) for dtype in ("bool", "int16", "int64")),
    scatter(0, (5, 3), 2),
    scatter(1, (2, 4, 3), 4, by="int32"),
    scatter(1, (3, 4), 6, add=True),
    scatter(0, (3, 2), 4, "int32", add=True),
    *(scatter(1, (2, 4), 3, dtype) for dtype in ("int8", "int16", "int64")),
    ravel("int32", "int64"),
    ravel("int64", "int32"),
)
