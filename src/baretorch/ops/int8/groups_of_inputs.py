"""Weights of 4 bits in groups: each 32 inputs of a row share a whole factor, so that products have 8 bits."""

from __future__ import annotations

import numpy as np

from baretorch.ir.graph import Array

GROUP = 32  # inputs that have a factor of their own, BT_INT4_GROUP
FACTORS = 18  # the largest of them: 7 * 18 has 8 bits
LEAST, MOST = -8, 7  # of a weight


def round_in_groups(rows: Array, scales: Array) -> Array:
    """Round rows of real weights to steps of their scales: to whole numbers within -7..7, times the least factor for
    each group that lets its largest number fit."""
    real, factors = rows / scales[:, None], factors_of(rows, scales)
    return np.asarray(np.clip(np.rint(real / factors), -7, 7) * factors, np.int64)


def factors_of(rows: Array, scales: Array) -> Array:
    """Return the factor of each weight's group."""
    largest = np.abs(_group(rows / scales[:, None])).max(axis=2)
    factors = np.clip(np.ceil(largest / 7), 1, FACTORS)
    return np.asarray(np.repeat(factors, GROUP, axis=1)[:, : rows.shape[1]])


def split_groups(rows: Array) -> tuple[Array, Array] | None:
    """Return rows of whole numbers as weights of 4 bits and factors[row, group], or None if they are not products of
    such."""
    groups = _group(rows.astype(np.int32))
    factors = np.maximum(np.gcd.reduce(groups, axis=2), 1)
    small = groups // factors[:, :, None]
    if small.min(initial=0) < LEAST or small.max(initial=0) > MOST:
        return None
    return small.reshape(len(rows), -1)[:, : rows.shape[1]], factors


def _group(rows: Array) -> Array:
    """Return [row, group, input], with zeros after the last input."""
    return np.pad(rows, ((0, 0), (0, -rows.shape[1] % GROUP))).reshape(len(rows), -1, GROUP)
