"""Cases of conversions between float32 and float types of 16 bits, bit by bit."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.halves import FromBfloat16, FromFloat16, ToBfloat16, ToFloat16
from tests.ops.case import Case, Inputs

TYPES = {
    "float16": (FromFloat16(), ToFloat16(), torch.float16),
    "bfloat16": (FromBfloat16(), ToBfloat16(), torch.bfloat16),
}


def some_halves(rng: np.random.Generator) -> tuple[Array, ...]:
    """Bits of all exponents: numbers, subnormal ones, infinities and NaN."""
    ends = [bits for half in range(0, 1 << 16, 0x400) for bits in (half, half + 1, half + 0x3FF)]
    return (np.array([*ends, *range(0, 1 << 16, 97)], np.uint16),)


def near_halves(dtype: torch.dtype) -> Array:
    """Every half, the floats halfway to the next, and the floats next to those."""
    halves = torch.arange(0, 1 << 16, dtype=torch.int32).to(torch.uint16).view(dtype).float()
    known = halves[torch.isfinite(halves)].numpy()
    ties = (known[:-1].astype(np.float64) + known[1:].astype(np.float64)) / 2
    middle = ties[np.abs(ties) < 3.4e38].astype(np.float32)
    return np.concatenate([known, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])


def bits(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The bits of PyTorch's halves. Those of NaN depend on its CPU; ours are the quiet NaN."""
    quiet = 0x7E00 if dtype is torch.float16 else 0x7FC0
    return torch.where(x.isnan(), quiet, x.to(dtype).view(torch.uint16).int()).to(torch.uint16)


def reals(dtype: torch.dtype) -> Inputs:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        odd = np.array([np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, -65520, 1e38, -0.0, 3.4028235e38], np.float32)
        some = rng.choice(near_halves(dtype), 4000)
        spread = rng.standard_normal(600) * 2.0 ** rng.integers(-30, 20, 600)
        return (np.concatenate([odd, some, spread.astype(np.float32)]),)

    return build


CASES = (
    *(
        Case(f"from_{name}", widen, some_halves, lambda x, t=dtype: x.view(t).float())
        for name, (widen, _, dtype) in TYPES.items()
    ),
    *(
        Case(f"to_{name}", round_, reals(dtype), lambda x, t=dtype: bits(x, t))
        for name, (_, round_, dtype) in TYPES.items()
    ),
)
