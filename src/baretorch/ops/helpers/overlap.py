"""Distances for `Kernel.overlap` of kernels that go forward through input and output, and for `behind`. See
kernel.py."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from baretorch.ir.graph import Array
from baretorch.ops.helpers.kernel import Call, Distances
from baretorch.ops.helpers.window import Padding, Pair

Overlap = Callable[[Call[Any]], Distances]


def distance(reads: Array, writes: Array, together: int) -> int:
    """Return the distance of a kernel that computes its output in groups, one after the other.

    `reads[i]` is the first byte of the input that group i reads, `writes[i]` the byte after the group in the output.
    When a group begins to read, the `together` groups from it on may already have been written: 0 if everything is read
    before anything is written, 1 if the group itself is written while it is read, 2 if it is written together with its
    successor.
    """
    if not reads.size:
        return 0
    still_read = np.minimum.accumulate(reads[::-1])[::-1]
    if together:
        written = np.concatenate([writes[together - 1 :], np.full(min(together - 1, writes.size), writes[-1])])
    else:
        written = np.concatenate([[0], writes[:-1]])
    return max(0, int((written[: reads.size] - still_read).max()))


def elementwise(call: Call[Any]) -> Distances:
    """Return the distances of a kernel that reads each element before it writes it. A repeated input must stay
    apart."""
    y = call.y

    def one(count: int, size: int) -> int | None:
        return max(0, (count - 1) * (y.dtype.size - size)) if count == y.count else None

    return tuple(one(t.count, t.dtype.size) for t in call.inputs if t.data is None)


def first_only(overlap: Callable[[Call[Any]], int | None]) -> Overlap:
    """Return this distance for the first input; the others must stay apart."""

    def distances(call: Call[Any]) -> Distances:
        others = sum(t.data is None for t in call.inputs[1:])
        return (*((overlap(call),) if call.x.data is None else ()), *(None,) * others)

    return distances


def in_place(call: Call[Any]) -> int:
    """Return 0: every byte is read for the last time before the byte at its place, or after it, is written."""
    return 0


def rows(together: int) -> Overlap:
    """Return the distance for rows of the last axis, each computed from the row of x with its number."""

    def one(call: Call[Any]) -> int:
        count = np.arange(prod(call.y.shape[:-1]))
        row_x, row_y = (t.shape[-1] * t.dtype.size for t in (call.x, call.y))
        return distance(count * row_x, (count + 1) * row_y, together)

    return first_only(one)


def pixels_back(together: int) -> Overlap:
    """Return the distance for pixels of y, each computed from the pixel of x with its number, from the last to the
    first. `together` pixels are written together while they are read; 0 if all are read before."""

    def one(call: Call[Any]) -> int:
        end = np.arange(1, prod(call.y.shape[:-1]) + 1)
        read, written = (t.shape[-1] * t.dtype.size for t in (call.x, call.y))
        return max(0, int((end * read - np.maximum(end - together, 0) * written).max(initial=0)))

    return first_only(one)


def windows(step: Callable[[Any], Pair], padding: Callable[[Any], Padding], together: int) -> Overlap:
    """Return the distance for pixels of an NHWC image, row by row, each computed from a window of x. `step` returns how
    far the window of an op moves from pixel to pixel. If a channel depends on one channel, and channels are computed in
    order, `together` is 0."""

    def one(call: Call[Any]) -> int:
        (n, in_h, in_w, in_), (_, h, w, out) = call.x.shape, call.y.shape
        (step_h, step_w), (top, _, left, _) = step(call.op), padding(call.op)
        image, row, column = np.arange(n), np.arange(h), np.arange(w)
        first_row = np.clip(row * step_h - top, 0, in_h)
        first_column = np.clip(column * step_w - left, 0, in_w)
        pixel = (image[:, None, None] * in_h + first_row[:, None]) * in_w + first_column
        behind = np.arange(1, pixel.size + 1)
        return distance(pixel.reshape(-1) * in_ * call.x.dtype.size, behind * out * call.y.dtype.size, together)

    return first_only(one)
