"""Cases of arithmetic with broadcasting, for floats and integers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np
import numpy.typing as npt
import torch

from baretorch.ops.elementwise import (
    Add,
    Arithmetic,
    Binary,
    Clamp,
    Div,
    FloorDivide,
    Fmod,
    Maximum,
    Minimum,
    Mul,
    Pow,
    Remainder,
    Sub,
    TruncDivide,
)
from tests.ops.case import EXACT, Case, Inputs, normal, spoiled, values

FUNCTIONS: dict[type[Binary], Callable[..., torch.Tensor]] = {
    Add: torch.add,
    Sub: torch.sub,
    Mul: torch.mul,
    Div: torch.div,
    FloorDivide: lambda a, b: torch.div(a, b, rounding_mode="floor"),
    TruncDivide: lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    Remainder: torch.remainder,
    Fmod: torch.fmod,
    Minimum: torch.minimum,
    Maximum: torch.maximum,
    Pow: torch.pow,
}
POW = (4e-7, 1e-37)  # 2 ULP and PyTorch's own; results below FLT_MIN may become 0


def binary(name: str, op: Binary, inputs: Inputs, tolerance: tuple[float, float] = EXACT) -> Case:
    def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = FUNCTIONS[type(op)](a, b)
        return y.clamp(op.lo, op.hi) if isinstance(op, Arithmetic) and y.is_floating_point() else y

    return Case(f"{op.name} {name}", op, inputs, run, tolerance=tolerance)


def clamp(name: str, op: Clamp, inputs: Inputs) -> Case:
    return Case(f"clamp {name}", op, inputs, lambda x: x.clamp(op.lo, op.hi))


def typed(dtype: str, *rows: npt.ArrayLike) -> Inputs:
    """These very numbers in this type, one argument per input."""
    return lambda rng: tuple(np.array(r, dtype) for r in rows)


SPECIAL = [0.0, -0.0, 1e-45, -1e-40, 1e-38, 1e-20, 1e-4, 0.1, 0.5, 1.0, -1.0, 3.0, 8.9, 9.1, -20.0, 87.0, -87.0]
SPECIAL += [89.0, -89.0, -88.0, 3e38, -3e38, inf, -inf, nan]

# Pairs that a division, a remainder or a power may trip over.
PAIRS = values(
    [7.0, -7.0, 7.0, -7.0, 1.0, 0.3, -0.3, 5.0, -5.0, 0.0, -0.0, 6.0, inf, 2.0, nan, 1e30, 1e-40, 1.0, -1.0, -2.0],
    [2.0, 2.0, -2.0, -2.0, 0.1, 0.1, 0.1, inf, inf, 3.0, 3.0, -3.0, 2.0, nan, 1.0, 7.0, 1e-41, nan, inf, 3.0],
)
BIG = {"int32": 2**31 - 1, "int64": 2**63 - 1}


def integers(dtype: str) -> Inputs:
    big = BIG[dtype]
    return typed(dtype, [7, -7, 7, -7, 6, -6, 0, big, -big - 1, 12345], [2, 2, -2, -2, -3, 3, 5, 2, 3, -big - 1])


def undefined(op: Binary, by_zero: list[int], by_minus_one: int) -> tuple[Case, ...]:
    """Where PyTorch raises: 7, -7 and 0 divided by 0; and the least integer divided by -1, which has no answer."""

    def case(dtype: str, least: int) -> Case:
        want = torch.tensor([*by_zero, by_minus_one * least], dtype=getattr(torch, dtype))
        inputs = typed(dtype, [7, -7, 0, least], [0, 0, 0, -1])
        return Case(f"{op.name} {dtype} undefined", op, inputs, lambda a, b: want)

    return tuple(case(dtype, -big - 1) for dtype, big in BIG.items())


ELEMENTWISE = (
    clamp("special values", Clamp(-1.0, 6.0), values(SPECIAL)),
    clamp("one side", Clamp(0.0, inf), spoiled((3, 4, 5))),
    clamp("no room", Clamp(2.0, -2.0), normal((5,))),
    binary("same shape", Add(), normal((2, 3, 4), (2, 3, 4))),
    binary("scalar", Add(), normal((2, 3), ())),
    binary("scalars", Add(), normal((), ())),
    binary("nothing", Add(), normal((2, 0, 3), (3,))),
    binary("last dimension", Add(), normal((2, 3, 4), (4,))),
    binary("channel", Add(), normal((1, 3, 4, 5), (3, 1, 1))),
    binary("both repeat", Add(), normal((4, 1, 5), (3, 1))),
    binary("four loops", Add(), normal((2, 1, 3, 1), (1, 4, 1, 5))),
    binary("six dimensions", Add(), normal((2, 3, 1, 1, 4, 2), (2, 3, 5, 2, 1, 1))),
    binary("relu", Add(lo=0.0), normal((3, 5), (3, 5))),
    binary("nan and infinity", Add(lo=-1.0, hi=1.0), spoiled((4, 5), (4, 5))),
    binary("infinities that cancel", Add(), values([inf, inf, 1.0], [-inf, inf, nan])),
    binary("overflow", Add(), values([3e38, -3e38], [3e38, -3e38])),
    binary("same shape", Mul(), normal((2, 3, 4), (2, 3, 4))),
    binary("gate per channel", Mul(), normal((1, 4, 5, 6), (1, 1, 1, 6))),
    binary("gate per place", Mul(hi=1.0), normal((1, 4, 5, 6), (1, 4, 5, 1))),
    binary("zero times infinity", Mul(), values([0.0, -0.0, inf, 1e-30], [inf, 2.0, inf, 1e-30])),
    binary("from a scalar", Sub(), normal((), (2, 3))),
    binary("plain", Sub(), normal((3, 5), (3, 5))),
    binary("relu", Sub(lo=0.0), normal((3, 5), (3, 1))),
    binary("same shape", Div(), normal((3, 5), (3, 5))),
    binary("by zero", Div(hi=9.0), values([1.0, -1.0, 0.0, inf, nan], [0.0, 0.0, 0.0, inf, 1.0])),
    binary("special pairs", FloorDivide(), PAIRS),
    binary("special pairs", TruncDivide(), PAIRS),
    binary("special pairs", Remainder(), PAIRS),
    binary("special pairs", Fmod(), PAIRS),
    binary("special pairs", Pow(), PAIRS, POW),
    binary("repeated", Remainder(), normal((3, 1), (1, 4)), (1e-6, 1e-7)),
    binary(
        "many", Pow(), lambda rng: (rng.random((8, 9), "f4") * 9, rng.standard_normal((9,)).astype("f4") * 9), POW
    ),
    binary("special values", Minimum(), values([1.0, nan, 2.0, -inf, 3.0], [nan, 1.0, inf, 0.0, 2.0])),
    binary("special values", Maximum(), values([1.0, nan, 2.0, -inf, 3.0], [nan, 1.0, inf, 0.0, 2.0])),
    *(
        binary(dtype, op, integers(dtype))
        for dtype in BIG
        for op in (Add(), Sub(), Mul(), FloorDivide(), TruncDivide(), Remainder(), Fmod(), Minimum(), Maximum())
    ),
    *undefined(FloorDivide(), [0, 0, 0], 1),
    *undefined(TruncDivide(), [0, 0, 0], 1),
    *undefined(Remainder(), [7, -7, 0], 0),
    *undefined(Fmod(), [7, -7, 0], 0),
    binary("int64 repeated", Add(), typed("int64", [[1], [2]], [10, 20, 30])),
)  # fmt: skip

CASES = ELEMENTWISE
