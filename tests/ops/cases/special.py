"""Cases of functions that few models need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.elementwise import Elementwise
from baretorch.ops.functions import (
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atan2,
    Atanh,
    Cosh,
    Erfc,
    Erfcx,
    Erfinv,
    Exp2,
    Hypot,
    Log10,
    Sinh,
)
from tests.ops.case import Case, normal
from tests.ops.cases.elementwise import SPECIAL
from tests.ops.cases.functions import FEW, spread

SIX = (8e-7, 1e-37)  # 6 ULP; results below FLT_MIN may become 0


def wide(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """PyTorch's function in double precision: some of its float ones overflow early, or are off by 20 ULP."""
    return lambda *x: function(*(t.double() for t in x)).float()


FUNCTIONS: dict[type[Elementwise], tuple[Callable[..., torch.Tensor], tuple[float, float]]] = {
    Exp2: (wide(torch.exp2), FEW),
    Log10: (wide(torch.log10), FEW),
    Asin: (wide(torch.asin), FEW),
    Acos: (wide(torch.acos), FEW),
    Atan: (wide(torch.atan), FEW),
    Sinh: (wide(torch.sinh), FEW),
    Cosh: (wide(torch.cosh), FEW),
    Asinh: (wide(torch.asinh), FEW),
    Acosh: (wide(torch.acosh), FEW),
    Atanh: (wide(torch.atanh), FEW),
    Erfc: (wide(torch.erfc), SIX),
    Erfcx: (wide(torch.special.erfcx), SIX),
    Erfinv: (wide(torch.erfinv), FEW),
}
PAIRS: dict[type[Elementwise], Callable[..., torch.Tensor]] = {Atan2: wide(torch.atan2), Hypot: wide(torch.hypot)}


def within(rng: np.random.Generator) -> tuple[Array, ...]:
    """Return numbers over all of [-1, 1], with its borders, and near them."""
    return (np.array([-1, 1, 0.99999994, *np.linspace(-1, 1, 41), *np.tanh(rng.standard_normal(100) * 3)], np.float32),)


def every_pair(rng: np.random.Generator) -> tuple[Array, ...]:
    a, b = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    return a.copy(), b.copy()


CASES = (
    *(Case(f"{op.name} spread", op(), spread, run, tolerance=t) for op, (run, t) in FUNCTIONS.items()),
    *(
        Case(f"{op.name} within 1", op(), within, *FUNCTIONS[op][:1], tolerance=FEW)
        for op in (Asin, Acos, Atanh, Erfinv)
    ),
    *(Case(f"{op.name} special", op(), every_pair, run, tolerance=FEW) for op, run in PAIRS.items()),
    *(Case(f"{op.name} broadcast", op(), normal((3, 1, 5), (4, 1)), run, tolerance=FEW) for op, run in PAIRS.items()),
)
