"""Derives other inputs from an example, so that a model can be compared for more than one input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baretorch.ir.graph import Array

SHRINK = (0.75, 0.5)  # what real numbers are multiplied by: they stay in the range of the example
COUNT = len(SHRINK)


def variations(inputs: Sequence[Array]) -> list[tuple[Array, ...]]:
    """Return two sets of inputs that differ from the example and from each other, if that is possible.

    Values are moved along the first dimension that has several. Real numbers are scaled down as well. Integers keep to
    the values of the example, or to 0 and half of it if they are all equal, so that indices stay valid.
    """
    return [tuple(_varied(x, which) for x in inputs) for which in range(COUNT)]


def _varied(x: Array, which: int) -> Array:
    axis = next((i for i, size in enumerate(x.shape) if size > 1), None)
    moved = x if axis is None else np.roll(x, which + 1, axis)
    if x.dtype.kind in "fc":
        if not x.any():
            rng = np.random.default_rng(which)
            return np.asarray(rng.standard_normal(x.shape), x.dtype)
        return np.asarray(moved * SHRINK[which], x.dtype)
    if x.dtype.kind in "iu" and np.array_equal(moved, x) and x.size:
        least = x.min()
        return np.full_like(x, least if least < x.max() else 0 if which else max(least, 0) // 2)
    return np.array(moved)
