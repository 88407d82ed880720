"""Cases of comparisons, truth values, choices and casts."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np
import torch

from baretorch.ir.graph import Array, DType, Shape
from baretorch.ops.elementwise import TYPE_NAMES
from baretorch.ops.logic import Cast, Comparison, Eq, Le, LogicalAnd, LogicalNot, LogicalOr, Lt, Ne, Where
from tests.ops.case import Case, Inputs, counted
from tests.ops.cases.elementwise import BIG, typed

COMPARISONS: dict[type[Comparison], Callable[..., torch.Tensor]] = {
    Eq: torch.eq,
    Ne: torch.ne,
    Lt: torch.lt,
    Le: torch.le,
}
ANY = {
    "float32": typed("float32", [1.0, 2.0, nan, inf, 0.0, -0.0, 2.0], [2.0, 1.0, nan, inf, -0.0, nan, 2.0]),
    "int32": typed("int32", [1, 2, -3, BIG["int32"]], [2, 1, -3, -BIG["int32"] - 1]),
    "int64": typed("int64", [1, 2, -3, BIG["int64"]], [2, 1, -3, 2**32]),
    "int8": typed("int8", [1, 2, -3, 127], [2, 1, -3, -128]),
    "bool": typed("bool", [0, 0, 1, 1], [0, 1, 0, 1]),
}
TRUTH = typed("bool", [[0, 0, 1, 1], [1, 0, 1, 0]], [0, 1, 0, 1])


def chosen(dtype: str, condition: Shape, a: Shape, b: Shape) -> Inputs:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        return (np.asarray(rng.random(condition) < 0.5), *counted(dtype, a, b)(rng))

    return build


# Numbers that every type holds: what is too large for a type is undefined in PyTorch, and defined by `SATURATED`.
FITTING = [0, 1, 2, 99, 100, 127]


def casts(x: DType, y: DType) -> Case:
    numbers = FITTING if x is not DType.FLOAT32 else [0.0, 0.5, 0.99, 1.0, 2.7, 126.9]
    if x.numpy.kind in "if" and y.numpy.kind in "if":
        numbers = [*numbers, *(-n for n in numbers)]
    to = getattr(torch, y.label)
    return Case(f"cast {x.label} to {y.label}", Cast(y.label), typed(x.label, numbers), lambda v: v.to(to))


def saturated(y: DType, least: int, greatest: int) -> Case:
    numbers = [inf, -inf, nan, 3e38, -3e38, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 256.0, -129.0, 127.5, -0.5]

    def run(x: torch.Tensor) -> torch.Tensor:
        whole = [0 if v != v else greatest if v >= greatest else least if v <= least else int(v) for v in x.tolist()]
        return torch.tensor(whole, dtype=getattr(torch, y.label))

    return Case(f"cast to {y.label}, too large", Cast(y.label), typed("float32", numbers), run)


CASES = (
    *(Case(f"{op.name} {t}", op(), given, run) for op, run in COMPARISONS.items() for t, given in ANY.items()),
    Case("lt repeated", Lt(), counted("float32", (3, 1, 4), (2, 1)), torch.lt),
    Case("le scalar", Le(), counted("int64", (3, 5), ()), torch.le),
    Case("logical_and", LogicalAnd(), TRUTH, torch.logical_and),
    Case("logical_or", LogicalOr(), TRUTH, torch.logical_or),
    Case("logical_not", LogicalNot(), typed("bool", [0, 1, 1]), torch.logical_not),
    *(Case(f"where {t}", Where(), chosen(t, (3, 5), (3, 5), (3, 5)), torch.where) for t in ANY if t != "int8"),
    Case("where all repeat", Where(), chosen("float32", (3, 1, 1), (4, 1), (5,)), torch.where),
    Case("where scalars", Where(), chosen("float32", (2, 3, 4), (), ()), torch.where),
    Case("where one condition", Where(), chosen("int32", (), (2, 3), (3,)), torch.where),
    *(casts(x, y) for x in TYPE_NAMES for y in TYPE_NAMES if x is not y),
    saturated(DType.INT8, -128, 127),
    saturated(DType.UINT8, 0, 255),
    saturated(DType.INT16, -32768, 32767),
    saturated(DType.INT32, -(2**31), 2**31 - 1),
    saturated(DType.INT64, -(2**63), 2**63 - 1),
    Case("cast nan to bool", Cast("bool"), typed("float32", [nan, inf, 0.0, -0.0, 1e-45]), lambda x: x.bool()),
    Case("cast int64 to int32, too large", Cast("int32"), typed("int64", [2**31, -(2**40) + 5]), lambda x: x.int()),
    Case(
        "cast int64 to float32, rounded", Cast("float32"), typed("int64", [2**24 + 1, 2**53 + 1]), lambda x: x.float()
    ),
)
