"""Cases of activation functions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import torch
import torch.nn.functional as F

from baretorch.ops.activations import (
    Elu,
    Gelu,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    LeakyRelu,
    LogSigmoid,
    Mish,
    Prelu,
    Silu,
    Softplus,
    Softshrink,
    Threshold,
)
from baretorch.ops.elementwise import Elementwise
from tests.ops.case import EXACT, Case, Inputs, normal, values
from tests.ops.cases.elementwise import SPECIAL

FEW = (1e-6, 1e-36)  # some ULP; exponentials below FLT_MIN are 0
NEAR = (1e-6, 1e-6)  # 1 + erf(x) and 1 + tanh(x) cancel where x is far below 0, here as in PyTorch

# PyTorch's hardswish overflows for numbers that are almost too large, and its gelu, on some CPUs, for infinity.
TAME = [v for v in SPECIAL if not abs(v) > 1e30]

FUNCTIONS: tuple[tuple[Elementwise, Callable[..., torch.Tensor], tuple[float, float]], ...] = (
    (LeakyRelu(0.01), F.leaky_relu, (2e-7, 0.0)),
    (LeakyRelu(-0.5), lambda x: F.leaky_relu(x, -0.5), EXACT),
    (Elu(), F.elu, FEW),
    (Elu(0.5 * 1.5, 1.5, 2.0), lambda x: torch.ops.aten.elu(x, 0.5, 1.5, 2.0), FEW),
    (Elu(1.7580993408473766, 1.0507009873554805), F.selu, FEW),
    (Silu(), F.silu, FEW),
    (Mish(), F.mish, (2e-6, 1e-36)),
    (Hardsigmoid(), F.hardsigmoid, FEW),
    (Softplus(), F.softplus, FEW),
    (Softplus(2.0, 5.0), lambda x: F.softplus(x, 2.0, 5.0), FEW),
    (LogSigmoid(), F.logsigmoid, FEW),
    (Hardshrink(), F.hardshrink, EXACT),
    (Softshrink(0.25), lambda x: F.softshrink(x, 0.25), EXACT),
    (Threshold(0.5, -2.0), lambda x: F.threshold(x, 0.5, -2.0), EXACT),
)


def spread(special: list[float]) -> Inputs:
    """Special values, and some more about 0."""
    return lambda rng: (np.array([*special, *rng.standard_normal(200) * 3], np.float32),)


CASES = (
    *(Case(str(op), op, spread(SPECIAL), f, tolerance=t) for op, f, t in FUNCTIONS),
    Case("hardswish", Hardswish(), spread(TAME), F.hardswish, tolerance=FEW),
    Case("gelu", Gelu(), spread(TAME), F.gelu, tolerance=NEAR),
    Case("gelu tanh", Gelu(True), spread(TAME), lambda x: F.gelu(x, approximate="tanh"), tolerance=NEAR),
    Case("prelu one slope", Prelu(), normal((2, 3, 4), (1,)), lambda x, w: torch.where(x > 0, x, w * x)),
    Case("prelu per channel", Prelu(), normal((2, 5, 3), (3,)), lambda x, w: torch.where(x > 0, x, w * x)),
    Case("prelu special values", Prelu(), values(SPECIAL, [-inf]), lambda x, w: torch.where(x > 0, x, w * x)),
)
