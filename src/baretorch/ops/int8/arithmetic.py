"""The integer arithmetic of int8 models in NumPy; kernels/int8.h has it in C. See docs/arithmetic.md.

    y = clamp(zero + (((acc << shift) * multiplier + 2^31) >> 32), lo, hi)

with multiplier / 2^32 * 2^shift = the real factor between the accumulator's scale and the output's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array

LARGEST_SHIFT = 15
LOWEST, HIGHEST = -32768, 32767  # of an int16


def requantize(acc: Array, multiplier: Array, shift: int, zero: int, lo: int, hi: int) -> Array:
    """Convert accumulators (int32, channels last) to int8, exactly as every kernel does."""
    wide = np.left_shift(acc.astype(np.int64), shift) * multiplier.astype(np.int64)
    rounded = np.right_shift(wide + (1 << 31), 32)
    y: Array = np.clip(rounded + zero, lo, hi).astype(np.int8)
    return y


def multipliers(factors: Sequence[float]) -> tuple[Array, int]:
    """Return a multiplier per channel and one shift for all, for real factors: each is below 1/2 after the shift."""
    largest = max(factors, default=0.0)
    shift = 0
    while largest / (1 << shift) >= 0.5:
        shift += 1
        if shift > LARGEST_SHIFT:
            raise CompileError(
                f"its output's scale is {largest:.3g} times finer than its accumulator's",
                need=f"a factor below {(1 << LARGEST_SHIFT) / 2:g}",
                try_="calibrate with data that reaches the values the layer has in use",
            )
    exact = [round(f / (1 << shift) * (1 << 32)) for f in factors]
    return np.array([min(m, 0x7FFFFFFF) for m in exact], np.int32), shift


def quantize_array(x: Array, scale: float, zero: int, to: type[np.int8] | type[np.int16] = np.int8) -> Array:
    """Convert float32 to int8 or int16: x times 1 / scale in float32, half to even. NaN becomes the zero point."""
    limits = np.iinfo(to)
    with np.errstate(all="ignore"):
        scaled = np.rint(x.astype(np.float32) * np.float32(1.0 / scale))
        scaled = np.where(np.isnan(scaled), 0, scaled)
        return (np.clip(scaled, limits.min - zero, limits.max - zero) + zero).astype(to)


def dequantize(q: Array, scale: float, zero: int) -> Array:
    """Convert int8 or int16 to float32."""
    return ((q.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)).astype(np.float32)
