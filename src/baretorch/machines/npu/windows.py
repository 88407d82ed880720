"""Sums, products and maxima over windows of a feature map, as whole numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import Ints, Shape, Window

NONE, NEAREST, ZEROS = 0, 1, 2  # how a feature map is made twice as large
NOTHING = -(1 << 62)  # the largest of no numbers; less it, the smallest


def source_size(mode: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the rows and columns to read for this many of the enlarged feature map."""
    return (rows, columns) if mode == NONE else ((rows + 1) // 2, (columns + 1) // 2)


def upscaled(values: Ints, mode: int, rows: int, columns: int) -> Ints:
    if mode == NONE:
        return values
    if mode == NEAREST:
        return values.repeat(2, 0).repeat(2, 1)[:rows, :columns]
    if mode != ZEROS:
        raise NpuFault(FaultKind.PARSE, f"no way to make an input larger is {mode}")
    large = np.zeros((2 * values.shape[0], 2 * values.shape[1], values.shape[2]), np.int64)
    large[::2, ::2] = values
    return large[:rows, :columns]


def taps(x: Ints, w: Window, out: Shape, fill: int) -> Iterator[tuple[int, int, Ints]]:
    """Row and column in the kernel, and what each place of the output sees there; `fill` where the input ends."""
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


def convolved(x: Ints, weights: Ints, w: Window, out: Shape) -> Ints:
    """`weights` are [output, row, column, input]. In float64, which holds all of these sums exactly."""
    height, width, depth = out
    total = np.zeros((height * width, depth))
    plain = np.ascontiguousarray(weights.transpose(1, 2, 3, 0)).astype(np.float64)
    for ky, kx, seen in taps(x.astype(np.float64), w, out, 0):
        total += seen.reshape(height * width, -1) @ plain[ky, kx]
    return total.reshape(out).astype(np.int64)


def convolved_depthwise(x: Ints, weights: Ints, w: Window, out: Shape) -> Ints:
    """`weights` are [output, row, column, 1]."""
    total = np.zeros(out, np.int64)
    for ky, kx, seen in taps(x, w, out, 0):
        total += seen * weights[:, ky, kx, 0]
    return total


def summed(x: Ints, w: Window, out: Shape) -> tuple[Ints, Ints]:
    """The sums, and how many elements of the input each is made of."""
    total, count = np.zeros(out, np.int64), np.zeros((out[0], out[1], 1), np.int64)
    for _, _, seen in taps(x, w, out, 0):
        total += seen
    for _, _, seen in taps(np.ones((*x.shape[:2], 1), np.int64), w, (out[0], out[1], 1), 0):
        count += seen
    return total, count


def largest(x: Ints, w: Window, out: Shape) -> Ints:
    best = np.full(out, NOTHING, np.int64)
    for _, _, seen in taps(x, w, out, NOTHING):
        np.maximum(best, seen, out=best)
    return best
