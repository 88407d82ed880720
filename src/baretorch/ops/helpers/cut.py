"""Parts of an output: where operators can be cut (`Op.cut`), where kernels can compute a part (`Kernel.splits`), and
the call that computes one.

Bands of rows and shares of several cores are such parts. Rows are contiguous, and so are the inputs that they depend
on. Some output channels of several rows are not: the call then has a `pitch`, which the kernel must support.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import add
from typing import Any

from baretorch.ir.graph import Op, Piece, Span, Tensor, with_data
from baretorch.ops.helpers.kernel import Call, Split

Splits = Callable[[Call[Any]], tuple[Split, ...]]


@dataclass(frozen=True)
class Part:
    """A call that computes a part of another call's output. Its tensors have the names of the whole ones, except for
    constants of which it reads a part. `offsets` are the bytes at which it starts to read each non-constant input, and
    `at` is the byte of the output at which it starts to write. If it is `wide`, its pitch is that of its input too.
    `cuts` lists how the whole was cut: axis, start, stop and `wide`, one cut after the other."""

    call: Call[Any]
    offsets: tuple[int, ...]
    at: int
    wide: bool = False
    cuts: tuple[tuple[int, int, int, bool], ...] = ()


def part_of(call: Call[Any], axis: int, start: int, stop: int, wide: bool = False) -> Part | None:
    """Return the call that computes [start, stop) of the output along an axis, or None if the operator cannot be cut
    there or reads bytes that are not contiguous. Some channels of a `wide` input need not be contiguous."""
    piece = call.op.cut(call.inputs, call.y, axis, start, stop)
    if piece is None:
        return None
    inputs, offsets = [], []
    y, last = call.y, len(call.y.shape) - 1
    rows, pitch = prod(y.shape[:axis]), call.pitch
    runs = rows  # of channels, that lie apart
    for i, (t, span) in enumerate(zip(call.inputs, piece.reads, strict=True)):
        if t.data is None:
            own = wide and span is not None and span.axis == axis == len(t.shape) - 1 and t.shape[axis] == call.y_pitch
            if span is not None and prod(t.shape[: span.axis]) != 1 and not own:
                return None
            runs = max(runs, prod(t.shape[:axis])) if own else runs
            inside = prod(t.shape[span.axis + 1 :]) if span else 0
            if i == piece.alike and axis < last:
                inside = prod(y.shape[axis + 1 : last]) * call.y_pitch
            offsets.append(span.start * inside * t.dtype.size if span else 0)
        inputs.append(_take(t, span) if span else t)
    if axis == last:
        pitch = call.y_pitch if runs > 1 else 0
    elif rows != 1:
        return None
    element = prod(y.shape[axis + 1 : last]) * call.y_pitch if axis < last else 1
    made = replace(y, shape=(*y.shape[:axis], stop - start, *y.shape[axis + 1 :]))
    own = Call(piece.op, tuple(inputs), (made,), pitch)
    return Part(own, tuple(offsets), start * element * y.dtype.size, wide, ((axis, start, stop, wide),))


def part_within(part: Part, axis: int, start: int, stop: int, wide: bool = False) -> Part | None:
    """Return a part of a part, as a part of the whole."""
    found = part_of(part.call, axis, start, stop, wide)
    if found is None:
        return None
    offsets = tuple(map(add, part.offsets, found.offsets))
    return Part(found.call, offsets, part.at + found.at, part.wide or found.wide, part.cuts + found.cuts)


def _take(t: Tensor, span: Span) -> Tensor:
    where = (slice(None),) * span.axis + (slice(span.start, span.stop),)
    if t.data is not None:
        part = with_data(t, t.data[where])
        return part if part.shape == t.shape else replace(part, name=f"{t.name}_from{span.start}to{span.stop}")
    return replace(t, shape=(*t.shape[: span.axis], span.stop - span.start, *t.shape[span.axis + 1 :]))


# --- pieces, for Op.cut -----------------------------------------------------------------------------------


def at_the_same_place(op: Op, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece:
    """Return the piece of an op whose outputs depend on the elements at their own place, with NumPy's broadcasting."""

    def read(t: Tensor) -> Span | None:
        own = axis - (len(y.shape) - len(t.shape))
        return Span(own, start, stop) if own >= 0 and t.shape[own] == y.shape[axis] else None

    return Piece(op, tuple(map(read, inputs)))


def from_first(op: Op, inputs: Sequence[Tensor], axis: int, start: int, stop: int) -> Piece:
    """Return the piece of an op whose outputs [start, stop) depend on [start, stop) of the first input and all of the
    others."""
    return Piece(op, (Span(axis, start, stop), *(None for _ in inputs[1:])))


def channels_of(op: Op, inputs: Sequence[Tensor], start: int, stop: int) -> Piece:
    """Return the piece of an op whose output channels depend on all of the first input and their own place in the
    others."""
    return Piece(op, (None, *(Span(0, start, stop) for _ in inputs[1:])))


# --- splits, for Kernel.splits ----------------------------------------------------------------------------


def rows(call: Call[Any]) -> tuple[Split, ...]:
    """Split along the outermost axis that is not 1, unless that is the last: runs of rows."""
    return tuple(s for s in outermost(call) if s.axis < len(call.y.shape) - 1)


def outermost(call: Call[Any]) -> tuple[Split, ...]:
    """Split along the outermost axis that is not 1: runs of elements."""
    found = [axis for axis, size in enumerate(call.y.shape) if size != 1]
    return (Split(found[0]),) if found and call.y.count else ()


def rows_or_channels(step: int) -> Splits:
    """Split rows, or if there is only one row, channels at multiples of `step`."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return rows(call) or (Split(len(call.y.shape) - 1, step),)

    return splits


def rows_and_channels(step: int) -> Splits:
    """Split rows, and channels at multiples of `step`, for a kernel that supports a pitch."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return (*rows(call), Split(len(call.y.shape) - 1, step))

    return splits


def rows_and_own_channels(step: int) -> Splits:
    """Split rows and channels for a kernel that computes each channel from one input channel, and supports the input's
    pitch too."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return (*rows(call), Split(len(call.y.shape) - 1, step, wide=True))

    return splits


def where_ends_fit(fits: Callable[[Call[Any]], bool], splits: Splits) -> Splits:
    """Split only where the kernel fits the smallest parts, at both ends."""

    def some(call: Call[Any]) -> tuple[Split, ...]:
        return tuple(s for s in splits(call) if all(map(fits, _ends(call, s))))

    def _ends(call: Call[Any], split: Split) -> list[Call[Any]]:
        size, places = call.y.shape[split.axis], split.places(call.y)
        ends = [(0, places[0]), (places[-1], size)] if places else []
        parts = [part_of(call, split.axis, start, stop, split.wide) for start, stop in ends]
        return [part.call for part in parts if part is not None]

    return some
