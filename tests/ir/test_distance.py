"""Distances of results: what counts as equal, and what as infinitely far."""

from __future__ import annotations

import numpy as np
import pytest

from baretorch.ir.distance import distance, is_near, largest, largest_distance

NAN, INF = np.nan, np.inf


def test_numbers_that_are_not_finite_equal_only_themselves() -> None:
    a = np.array([NAN, NAN, INF, INF, INF, 1.0], np.float32)
    b = np.array([NAN, 1.0, INF, -INF, 2.0, 3.0], np.float32)
    assert distance(a, b).tolist() == distance(b, a).tolist() == [0, INF, 0, INF, INF, 2]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_, np.int64, np.float32, np.complex64])
def test_all_types_are_compared_without_overflow(dtype: type) -> None:
    info = np.iinfo(dtype) if np.issubdtype(dtype, np.integer) else None
    low, high = (info.min, info.max) if info else (0, 1)
    a, b = np.array([low], dtype), np.array([high], dtype)
    assert largest_distance(a, b) == float(high) - float(low) and largest(a) == abs(float(low))


def test_the_largest_number_is_finite() -> None:
    assert largest(np.array([NAN, -3.0, INF])) == 3.0
    assert largest(np.array([], np.float32)) == largest(np.array([NAN])) == 0.0


def test_an_infinite_number_does_not_make_others_near() -> None:
    want = np.array([INF, 100.0])
    assert is_near(np.array([INF, 100.05]), want, 1e-3)
    assert not is_near(np.array([INF, 101.0]), want, 1e-3) and not is_near(np.array([5.0, 100.0]), want, 1e-3)
    assert not is_near(np.zeros((1, 2)), np.zeros(2), 1e-3), "other shapes"
