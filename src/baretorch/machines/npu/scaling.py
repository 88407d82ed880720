"""Scale accumulators to outputs: multiply by a whole number, shift right, and round."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from baretorch.machines.npu.registers import Ints


class RoundingMode(Enum):
    DOUBLE = auto()  # half up, and before that once more at bit 31, away from zero
    NATURAL = auto()  # half up
    DOUBLE_ASYMMETRIC = auto()  # half up, and before that once more at bit 31, up
    SYMMETRIC = auto()  # half away from zero
    TO_ZERO = auto()
    DOWN = auto()


def scaled(values: Ints, factor: Ints | int, shift: Ints | int, how: RoundingMode) -> Ints:
    """`values * factor / 2^shift`, rounded."""
    most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if most * (int(np.max(factor)) if np.size(factor) else 0) >= 1 << 62:
        wide = _shifted(
            values.astype(object) * np.asarray(factor).astype(object), np.asarray(shift).astype(object), how
        )
        return wrapped(wide, 64)
    return _shifted(values * factor, np.asarray(shift), how)


def _shifted(product: Ints, shift: Ints, how: RoundingMode) -> Ints:
    one = np.ones_like(shift)
    half = np.where(shift > 0, one << np.maximum(shift - 1, 0), 0)
    if how is RoundingMode.DOWN:
        return product >> shift
    if how is RoundingMode.TO_ZERO:
        return np.where(product < 0, -((-product) >> shift), product >> shift)
    if how is RoundingMode.SYMMETRIC:
        return np.where(product < 0, -((-product + half) >> shift), (product + half) >> shift)
    if how is RoundingMode.DOUBLE:
        early = np.where(product < 0, -(1 << 30), 1 << 30)
        return (product + half + np.where(shift > 31, early, 0)) >> shift
    if how is RoundingMode.DOUBLE_ASYMMETRIC:
        return (product + half + np.where(shift > 31, 1 << 30, 0)) >> shift
    return (product + half) >> shift


def wrapped(values: Ints, bits: int) -> Ints:
    """Wrap numbers to this many bits, in two's complement."""
    if bits == 64 and values.dtype == np.int64:
        return values
    half = 1 << (bits - 1)
    return (((values + half) & ((1 << bits) - 1)) - half).astype(np.int64)


def reciprocal(count: int) -> tuple[int, int]:
    """Factor and shift by which a sum of so many is divided."""
    k = (count - 1).bit_length()
    return ((1 << (31 + k)) + (1 << k)) // count, 31 + k
