"""Measure how far results are apart. docs/how-it-works.md lists the comparisons that use these functions."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Array


def distance(a: Array, b: Array) -> Array:
    """Return the absolute difference of each element; infinite if exactly one of the two is NaN or infinite."""
    x, y = _wide(a), _wide(b)
    with np.errstate(invalid="ignore"):
        apart = np.abs(x - y)
    apart = np.where(np.isnan(apart), np.inf, apart)
    return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, apart)


def largest_distance(a: Array, b: Array) -> float:
    """Return the largest difference of two elements; infinite if the shapes differ."""
    return float(distance(a, b).max(initial=0)) if a.shape == b.shape else float("inf")


def largest(x: Array) -> float:
    """Return the largest finite absolute value."""
    return float(np.abs(_wide(x[np.isfinite(x)])).max(initial=0))


def is_near(a: Array, b: Array, tolerance: float) -> bool:
    """Report whether no element of `a` is farther from `b` than this part of the largest number of `b`."""
    return largest_distance(a, b) <= tolerance * largest(b)


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
