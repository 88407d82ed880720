"""Cases of functions of one number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.functions import (
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Expm1,
    Floor,
    Function,
    Log,
    Log1p,
    Log2,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sigmoid,
    Sign,
    Sin,
    Sqrt,
    Tanh,
    Trunc,
)
from tests.ops.case import EXACT, Case, Inputs, normal
from tests.ops.cases.elementwise import BIG, SPECIAL, typed

ONE = (2e-7, 0.0)  # a rounding or two
FEW = (5e-7, 1e-37)  # 3 to 4 ULP, and PyTorch's own; results below FLT_MIN may become 0

FUNCTIONS: dict[type[Function], tuple[Callable[..., torch.Tensor], tuple[float, float]]] = {
    Neg: (torch.neg, EXACT),
    Abs: (torch.abs, EXACT),
    Sign: (torch.sign, EXACT),
    Floor: (torch.floor, EXACT),
    Ceil: (torch.ceil, EXACT),
    Round: (torch.round, EXACT),
    Trunc: (torch.trunc, EXACT),
    Sqrt: (torch.sqrt, ONE),
    Rsqrt: (torch.rsqrt, ONE),
    Reciprocal: (torch.reciprocal, EXACT),
    Exp: (torch.exp, FEW),
    Expm1: (torch.expm1, FEW),
    Log: (torch.log, FEW),
    Log1p: (torch.log1p, FEW),
    Log2: (torch.log2, FEW),
    Sin: (torch.sin, FEW),
    Cos: (torch.cos, FEW),
    Tanh: (torch.tanh, FEW),
    Sigmoid: (torch.sigmoid, FEW),
    Erf: (torch.erf, FEW),
}


def function(name: str, op: Function, inputs: Inputs) -> Case:
    run, tolerance = FUNCTIONS[type(op)]
    return Case(f"{op.name} {name}", op, inputs, run, tolerance=tolerance)


HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 8388607.5, -8388607.5, 8388609.0, 1e20]


def spread(rng: np.random.Generator) -> tuple[Array, ...]:
    """Special values, and some thousand to some thousandth of both signs."""
    many = rng.standard_normal(200) * 10 ** rng.uniform(-3, 3, 200)
    return (np.array([*SPECIAL, *HALVES, *many], np.float32),)


CASES = (
    *(function("spread", op(), spread) for op in FUNCTIONS),
    *(
        function(dtype, op(), typed(dtype, [0, 5, -5, big, -big - 1]))
        for op in (Neg, Abs, Sign)
        for dtype, big in BIG.items()
    ),
    function("scalar", Tanh(), normal(())),
    function("nothing", Exp(), normal((0, 3))),
)
