"""Cases of operators on the bits of integers."""

from __future__ import annotations

import numpy as np
import torch

from baretorch.ir.graph import Array
from baretorch.ops.logic import BitAnd, BitOr, Bitwise, BitXor, ShiftLeft, ShiftRight
from tests.ops.case import Case, Inputs

TYPES = ("int8", "uint8", "int32", "int64")
OPERATORS = {BitAnd: torch.bitwise_and, BitOr: torch.bitwise_or, BitXor: torch.bitwise_xor}
SHIFTS = {ShiftLeft: torch.bitwise_left_shift, ShiftRight: torch.bitwise_right_shift}


def anything(dtype: str) -> Inputs:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return tuple(rng.integers(low, high, shape, dtype=dtype, endpoint=True) for shape in ((5, 7), (7,)))

    return build


def shifts(dtype: str) -> Inputs:
    """Every number of bits, too many, and for signed types too few."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        info = np.iinfo(dtype)
        by = np.arange(-3 if info.min else 0, info.bits + 3).astype(dtype)
        return np.array([0, 1, info.max, info.min, 77, -78 if info.min else 78], dtype)[:, None], by

    return build


def case(name: str, op: Bitwise, inputs: Inputs) -> Case:
    return Case(f"{op.name} {name}", op, inputs, {**OPERATORS, **SHIFTS}[type(op)])


CASES = (
    *(case(dtype, op(), anything(dtype)) for op in OPERATORS for dtype in TYPES),
    *(case(dtype, op(), shifts(dtype)) for op in SHIFTS for dtype in TYPES),
)
