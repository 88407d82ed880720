"""Small systems of equations: singular ones, and what is refused."""

from __future__ import annotations

import numpy as np

from baretorch.ops.solve import Det, Solve
from tests.ops.case import Case, run_reference, values
from tests.ops.host import run_host
from tests.ops.refusal import refusal


def test_singular_matrices_give_no_numbers() -> None:
    """PyTorch raises, which a device cannot: every element is infinite or NaN, in NumPy as in C."""
    right = [[1], [1]]
    rows = ([[0, 0], [0, 0]], [[1, 2], [2, 4]], [[1, 1], [1, 1]])
    cases = [Case(f"singular {i}", Solve(), values(a, right), lambda a, b: a) for i, a in enumerate(rows)]
    for got, want in zip(run_host(cases, False), run_reference(cases), strict=True):
        assert not np.isfinite(got[0]).any()
        np.testing.assert_array_equal(got[0], want[0])


def test_refusals() -> None:
    assert "matrices of 5 rows are too large" in refusal(Solve(), (5, 5), (5, 1))
    assert "at most 4 rows" in refusal(Det(), (2, 5, 5))
    assert "not square" in refusal(Solve(), (2, 3), (2, 1))
    assert "the right side does not fit" in refusal(Solve(), (2, 2), (3, 1))
    assert "the right side does not fit" in refusal(Solve(), (4, 2, 2), (3, 2, 1))
