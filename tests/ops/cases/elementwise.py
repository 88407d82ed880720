"""Cases of operators that work element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import torch

from baretorch.ir import Op
from baretorch.ops.elementwise import Add, Arithmetic, Clamp, Mul
from baretorch.ops.functions import Sigmoid, Tanh
from tests.ops.case import EXACT, Case, Inputs, normal, spoiled, values

# 3 ULP and PyTorch's own; results below FLT_MIN may become 0
ULPS: dict[type[Op], tuple[float, float]] = {Tanh: (4e-7, 0.0), Sigmoid: (4e-7, 1e-37)}


def binary(name: str, op: Arithmetic, inputs: Inputs) -> Case:
    functions: dict[type[Arithmetic], Callable[..., torch.Tensor]] = {Add: torch.add, Mul: torch.mul}
    function = functions[type(op)]
    return Case(f"{op.name} {name}", op, inputs, lambda a, b: function(a, b).clamp(op.lo, op.hi))


def unary(name: str, op: Clamp | Tanh | Sigmoid, inputs: Inputs) -> Case:
    def run(x: torch.Tensor) -> torch.Tensor:
        return (
            x.clamp(op.lo, op.hi) if isinstance(op, Clamp) else torch.tanh(x) if isinstance(op, Tanh) else x.sigmoid()
        )

    return Case(f"{op.name} {name}", op, inputs, run, tolerance=ULPS.get(type(op), EXACT))


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

ELEMENTWISE = (
    unary("special values", Clamp(-1.0, 6.0), values(SPECIAL)),
    unary("one side", Clamp(0.0, inf), spoiled((3, 4, 5))),
    unary("no room", Clamp(2.0, -2.0), normal((5,))),
    unary("special values", Tanh(), values(SPECIAL)),
    unary("scalar", Tanh(), normal(())),
    unary("many", Tanh(), lambda rng: (rng.standard_normal((20, 50)).astype("float32") * 4,)),
    unary("special values", Sigmoid(), values(SPECIAL)),
    unary("many", Sigmoid(), lambda rng: (rng.standard_normal((20, 50)).astype("float32") * 20,)),
    binary("same shape", Add(), normal((2, 3, 4), (2, 3, 4))),
    binary("scalar", Add(), normal((2, 3), ())),
    binary("scalars", Add(), normal((), ())),
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
)  # fmt: skip

CASES = ELEMENTWISE
