"""Cases of reductions and softmax."""

from __future__ import annotations

from math import inf, nan

import torch

from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax
from tests.ops.case import Case, Inputs, normal, spoiled, values

SUMS = (1e-6, 1e-6)  # of some dozens of elements, in another order than PyTorch's
EXP = (2e-6, 1e-37)  # exp, sum and 1 / sum round; results below FLT_MIN may become 0


def mean(name: str, axes: tuple[int, ...], keepdim: bool, inputs: Inputs) -> Case:
    return Case(f"mean {name}", Mean(axes, keepdim), inputs, lambda x: x.mean(axes, keepdim), tolerance=SUMS)


def softmax(name: str, axis: int, inputs: Inputs) -> Case:
    return Case(f"softmax {name}", Softmax(axis), inputs, lambda x: torch.softmax(x, axis), tolerance=EXP)


MEAN = (
    mean("last", (1,), False, normal((3, 7))),
    mean("first, kept", (0,), True, normal((5, 3))),
    mean("middle", (1, 2), False, normal((2, 4, 5, 6))),
    mean("middle, kept", (1, 2), True, normal((2, 4, 5, 6))),
    mean("all", (0, 1, 2), False, normal((2, 3, 4))),
    mean("apart but for ones", (0, 2), False, normal((3, 1, 4, 2))),
    mean("nothing but ones", (1,), False, normal((3, 1, 2))),
    mean("unordered axes", (2, 1), False, normal((2, 4, 5))),
    mean("long", (0,), False, lambda rng: (rng.random(3000, "float32") * 2 - 1,)),
    mean("nan and infinity", (1,), False, spoiled((8, 5))),
)


SOFTMAX = (
    softmax("one", 0, normal((1,))),
    softmax("ten", 1, normal((1, 10))),
    softmax("first axis", 0, normal((7, 3))),
    softmax("middle axis", 1, normal((2, 5, 3))),
    softmax("large", 1, lambda rng: (rng.standard_normal((4, 33)).astype("float32") * 100,)),
    softmax("wide range", 0, values([-1e38, 0.0, -80.0, -87.5, -90.0, -104.0, 1.0])),
    softmax("far below zero", 1, lambda rng: (rng.standard_normal((2, 9)).astype("float32") - 500,)),
    softmax("one minus infinity", 0, values([0.5, -inf, 1.0])),
    softmax("all minus infinity", 1, values([[-inf, -inf], [0.0, -inf]])),
    softmax("plus infinity", 1, values([[0.0, inf, 1.0], [1.0, 2.0, 3.0]])),
    softmax("nan", 1, values([[0.0, nan, 1.0], [1.0, 2.0, 3.0]])),
)

SPECIAL = [
    0.0,
    -0.0,
    1e-45,
    -1e-40,
    1e-38,
    1e-20,
    1e-4,
    0.1,
    0.5,
    1.0,
    -1.0,
    3.0,
    8.9,
    9.1,
    -20.0,
    87.0,
    -87.0,
    89.0,
    -89.0,
]
SPECIAL += [-88.0, 3e38, -3e38, inf, -inf, nan]

CASES = (*MEAN, *SOFTMAX)
