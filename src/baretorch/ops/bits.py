"""Bits of integers: and, or, exclusive or, and shifts. Truth values have the operators of logic.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from baretorch.ir.graph import Array, DType
from baretorch.ops.elementwise import Binary, Elementwise


@dataclass(frozen=True)
class Bitwise(Binary):
    """An operator on the bits of each pair of integers."""

    source: ClassVar[str] = "bits/ref.c"
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.UINT8, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class BitAnd(Bitwise):
    """The bits that a and b both have."""

    name: ClassVar[str] = "bit_and"

    def value(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)


@dataclass(frozen=True)
class BitOr(Bitwise):
    """The bits that a or b has."""

    name: ClassVar[str] = "bit_or"

    def value(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)


@dataclass(frozen=True)
class BitXor(Bitwise):
    """The bits that one of a and b has, and not the other."""

    name: ClassVar[str] = "bit_xor"

    def value(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)


@dataclass(frozen=True)
class ShiftLeft(Bitwise):
    """a moved b bits to the left; 0 for a negative b, and for one of as many bits as a has or more."""

    name: ClassVar[str] = "shift_left"

    def value(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        return np.where(inside, np.left_shift(a, np.where(inside, b, b.dtype.type(0))), a.dtype.type(0))


@dataclass(frozen=True)
class ShiftRight(Bitwise):
    """a moved b bits to the right, keeping its sign; all bits are its sign's for a b that shift_left gives 0 for."""

    name: ClassVar[str] = "shift_right"

    def value(self, a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        inside = (b >= 0) & (b < bits)
        sign = np.where(a < 0, -1, 0).astype(a.dtype)
        return np.where(inside, np.right_shift(a, np.where(inside, b, b.dtype.type(0))), sign)


OPS: tuple[type[Elementwise], ...] = (BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight)
