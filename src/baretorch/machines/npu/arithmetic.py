"""Arithmetic on whole numbers: scale accumulators, and sums, products and maxima over windows of a feature map."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

import numpy as np

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import BlockShape, Int64s, Window

NONE, NEAREST, ZEROS = 0, 1, 2  # the ways to double the size of a feature map
NOTHING = -(1 << 62)  # the maximum of no numbers; its negative is the minimum


class RoundingMode(Enum):
    DOUBLE = auto()  # half up, and before that once more at bit 31, away from zero
    NATURAL = auto()  # half up
    DOUBLE_ASYMMETRIC = auto()  # half up, and before that once more at bit 31, up
    SYMMETRIC = auto()  # half away from zero
    TO_ZERO = auto()
    DOWN = auto()


def scale(values: Int64s, factor: Int64s | int, shift: Int64s | int, how: RoundingMode) -> Int64s:
    """Return `values * factor / 2^shift`, rounded."""
    most = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if most * (int(np.max(factor)) if np.size(factor) else 0) >= 1 << 62:
        wide = _shift_right(
            values.astype(object) * np.asarray(factor).astype(object), np.asarray(shift).astype(object), how
        )
        return wrap(wide, 64)
    return _shift_right(values * factor, np.asarray(shift), how)


def _shift_right(product: Int64s, shift: Int64s, how: RoundingMode) -> Int64s:
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


def wrap(values: Int64s, bits: int) -> Int64s:
    """Wrap numbers to this many bits, in two's complement."""
    if bits == 64 and values.dtype == np.int64:
        return values
    half = 1 << (bits - 1)
    return (((values + half) & ((1 << bits) - 1)) - half).astype(np.int64)


def reciprocal(count: int) -> tuple[int, int]:
    """Return the factor and the shift that divide a sum of `count` numbers by their number."""
    k = (count - 1).bit_length()
    return ((1 << (31 + k)) + (1 << k)) // count, 31 + k


def source_size(mode: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the rows and columns to read for this many of the enlarged feature map."""
    return (rows, columns) if mode == NONE else ((rows + 1) // 2, (columns + 1) // 2)


def upscale(values: Int64s, mode: int, rows: int, columns: int) -> Int64s:
    if mode == NONE:
        return values
    if mode == NEAREST:
        return values.repeat(2, 0).repeat(2, 1)[:rows, :columns]
    if mode != ZEROS:
        raise NpuFault(FaultKind.PARSE, f"invalid way to enlarge an input: {mode}")
    large = np.zeros((2 * values.shape[0], 2 * values.shape[1], values.shape[2]), np.int64)
    large[::2, ::2] = values
    return large[:rows, :columns]


def taps(x: Int64s, w: Window, out: BlockShape, fill: int) -> Iterator[tuple[int, int, Int64s]]:
    """Yield the kernel's rows and columns, each with the input that it multiplies; `fill` outside of the input."""
    height, width, _ = out
    padded = np.pad(x, ((w.top, w.bottom), (w.left, w.right), (0, 0)), constant_values=fill)
    for ky in range(w.height):
        y = ky * w.dilation_y
        for kx in range(w.width):
            c = kx * w.dilation_x
            yield (
                ky,
                kx,
                padded[
                    y : y + (height - 1) * w.stride_y + 1 : w.stride_y,
                    c : c + (width - 1) * w.stride_x + 1 : w.stride_x,
                ],
            )


def convolve_exactly(x: Int64s, weights: Int64s, w: Window, out: BlockShape) -> Int64s:
    """Compute a convolution in float64, which holds all of its sums exactly. `weights` are [output, row, column,
    input]."""
    height, width, depth = out
    total = np.zeros((height * width, depth))
    plain = np.ascontiguousarray(weights.transpose(1, 2, 3, 0)).astype(np.float64)
    for ky, kx, seen in taps(x.astype(np.float64), w, out, 0):
        total += seen.reshape(height * width, -1) @ plain[ky, kx]
    return total.reshape(out).astype(np.int64)


def convolve_depthwise(x: Int64s, weights: Int64s, w: Window, out: BlockShape) -> Int64s:
    """Compute a depthwise convolution; `weights` are [output, row, column, 1]."""
    total = np.zeros(out, np.int64)
    for ky, kx, seen in taps(x, w, out, 0):
        total += seen * weights[:, ky, kx, 0]
    return total


def sum_windows(x: Int64s, w: Window, out: BlockShape) -> tuple[Int64s, Int64s]:
    """Return the sum of each window, and how many elements of the input it has."""
    total, count = np.zeros(out, np.int64), np.zeros((out[0], out[1], 1), np.int64)
    for _, _, seen in taps(x, w, out, 0):
        total += seen
    for _, _, seen in taps(np.ones((*x.shape[:2], 1), np.int64), w, (out[0], out[1], 1), 0):
        count += seen
    return total, count


def max_windows(x: Int64s, w: Window, out: BlockShape) -> Int64s:
    best = np.full(out, NOTHING, np.int64)
    for _, _, seen in taps(x, w, out, NOTHING):
        np.maximum(best, seen, out=best)
    return best
