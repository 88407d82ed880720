"""Cases of choices by one truth value."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Array, Shape
from baretorch.ops.move import Choose
from tests.ops.case import Case


def choose(name: str, condition: bool, dtype: str, shape: Shape, truth: Shape = ()) -> Case:
    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        a, b = (rng.integers(-9, 9, shape).astype(dtype) for _ in range(2))
        return np.full(truth, condition), a, b

    return Case(f"choose {name}", Choose(), build, lambda c, a, b: a if bool(c) else b)


CASES = (
    choose("first", True, "float32", (2, 3)),
    choose("second", False, "float32", (2, 3)),
    choose("bytes", True, "int8", (7,)),
    choose("integers", False, "int64", (1, 2)),
    choose("a condition with dimensions", False, "float32", (3,), (1, 1)),
    choose("a single number", True, "float32", ()),
)
