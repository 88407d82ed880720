"""Cases of elements chosen by the order of the values, and of distances between rows."""

from __future__ import annotations

from math import inf

import numpy as np
import torch

from baretorch.ir.graph import Array, Shape
from baretorch.ops.cdist import Cdist
from baretorch.ops.scan import KthValue, Median, Mode
from tests.ops.case import EXACT, Case, Inputs, normal

# Types, shapes, and the axis.
ROWS: tuple[tuple[str, Shape, int], ...] = (
    ("float32", (7,), 0),
    ("float32", (3, 4, 5), 1),
    ("float32", (5, 1), 0),
    ("int32", (2, 9), 1),
    ("int64", (3, 4, 5), 1),
)


def distinct(dtype: str, shape: Shape) -> Inputs:
    """No number twice, so that there is no choice of where it is."""
    return lambda rng: ((rng.permutation(int(np.prod(shape))) - 9).reshape(shape).astype(dtype),)


def few(dtype: str, shape: Shape) -> Inputs:
    """Most numbers several times."""
    return lambda rng: (rng.integers(-2, 2, shape).astype(dtype),)


def with_nan(shape: Shape) -> Inputs:
    """One row with two NaN, one with one, others without."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        x = rng.standard_normal(shape).astype(np.float32)
        x[0, 1:3] = x[1, 2] = np.nan
        return (x,)

    return build


def third(x: torch.Tensor, shape: Shape, axis: int) -> tuple[torch.Tensor, ...]:
    return tuple(x.kthvalue(shape[axis] // 3 + 1, axis))


def stable(x: torch.Tensor, k: int) -> tuple[torch.Tensor, ...]:
    """Which of equal elements PyTorch's own kthvalue names is not defined."""
    made = x.sort(dim=1, stable=True)
    return made.values[:, k], made.indices[:, k]


ORDERS = (0.0, 1.0, 2.0, 3.0, 1.5, inf)

CASES = (
    *(
        Case(f"median {dtype} {s}", Median(a), distinct(dtype, s), lambda x, a=a: tuple(x.median(a)))
        for dtype, s, a in ROWS
    ),
    Case("median NaN", Median(1), with_nan((4, 5)), lambda x: tuple(x.median(1))),
    Case("median quiet NaN", Median(1, quiet=True), with_nan((4, 5)), lambda x: tuple(x.nanmedian(1))),
    *(
        Case(f"kth_value {dtype} {s}", KthValue(a, s[a] // 3), distinct(dtype, s), lambda x, s=s, a=a: third(x, s, a))
        for dtype, s, a in ROWS
    ),
    *(
        Case(f"kth_value {k} of many {dtype}", KthValue(1, k), few(dtype, (3, 40)), lambda x, k=k: stable(x, k))
        for dtype, k in (("float32", 0), ("float32", 19), ("int32", 39), ("int64", 20))
    ),
    Case("kth_value of many floats", KthValue(1, 57), normal((2, 301)), lambda x: stable(x, 57)),
    Case("kth_value NaN", KthValue(1, 3), with_nan((4, 5)), lambda x: stable(x, 3)),
    *(Case(f"mode {dtype} {s}", Mode(a), few(dtype, s), lambda x, a=a: tuple(x.mode(a))) for dtype, s, a in ROWS),
    *(
        Case(
            f"cdist order {p}",
            Cdist(p),
            normal((2, 3, 5), (2, 4, 5)),
            lambda a, b, p=p: torch.cdist(a, b, p, "donot_use_mm_for_euclid_dist"),
            tolerance=EXACT if p == 0 else (2e-6, 1e-7),
        )
        for p in ORDERS
    ),
    Case("cdist of one row", Cdist(2.0), normal((1, 3), (1, 3)), torch.cdist, tolerance=(2e-6, 1e-6)),
)
