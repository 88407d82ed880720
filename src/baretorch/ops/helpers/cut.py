"""Parts of an output: what operators say of them (`Op.cut`), where kernels can make them (`Kernel.splits`), and the
call that makes one.

Bands of rows and shares of several cores are such parts. Rows lie together, and so do the inputs that make them. Some
output channels of several rows do not: the call then has a `pitch`, which the kernel must know.
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
    """A call that makes a part of another's output. Its tensors have the whole ones' names, but for constants of which
    it reads a part. `offsets`: where in each non-constant input what it reads begins, in bytes; `at`: where in the
    output what it makes does. Where it is `wide`, the call's pitch is that of its input, too. `cuts` say how the whole
    was cut to get it: axis, start, stop, and whether wide, one cut after the other."""

    call: Call[Any]
    offsets: tuple[int, ...]
    at: int
    wide: bool = False
    cuts: tuple[tuple[int, int, int, bool], ...] = ()


def part_of(call: Call[Any], axis: int, start: int, stop: int, wide: bool = False) -> Part | None:
    """The call that makes [start, stop) of the output along an axis; None if the operator cannot be cut there, or what
    it reads does not lie together. Some channels of a `wide` input need not."""
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
        inputs.append(_taken(t, span) if span else t)
    if axis == last:
        pitch = call.y_pitch if runs > 1 else 0
    elif rows != 1:
        return None
    element = prod(y.shape[axis + 1 : last]) * call.y_pitch if axis < last else 1
    made = replace(y, shape=(*y.shape[:axis], stop - start, *y.shape[axis + 1 :]))
    own = Call(piece.op, tuple(inputs), (made,), pitch)
    return Part(own, tuple(offsets), start * element * y.dtype.size, wide, ((axis, start, stop, wide),))


def part_within(part: Part, axis: int, start: int, stop: int, wide: bool = False) -> Part | None:
    """A part of a part, as one of the whole."""
    found = part_of(part.call, axis, start, stop, wide)
    if found is None:
        return None
    offsets = tuple(map(add, part.offsets, found.offsets))
    return Part(found.call, offsets, part.at + found.at, part.wide or found.wide, part.cuts + found.cuts)


def _taken(t: Tensor, span: Span) -> Tensor:
    where = (slice(None),) * span.axis + (slice(span.start, span.stop),)
    if t.data is not None:
        part = with_data(t, t.data[where])
        return part if part.shape == t.shape else replace(part, name=f"{t.name}_from{span.start}to{span.stop}")
    return replace(t, shape=(*t.shape[: span.axis], span.stop - span.start, *t.shape[span.axis + 1 :]))


# --- what operators say -----------------------------------------------------------------------------------


def at_the_same_place(op: Op, inputs: Sequence[Tensor], y: Tensor, axis: int, start: int, stop: int) -> Piece:
    """Each output is made from the elements at its own place, with NumPy's broadcasting."""

    def read(t: Tensor) -> Span | None:
        own = axis - (len(y.shape) - len(t.shape))
        return Span(own, start, stop) if own >= 0 and t.shape[own] == y.shape[axis] else None

    return Piece(op, tuple(map(read, inputs)))


def from_first(op: Op, inputs: Sequence[Tensor], axis: int, start: int, stop: int) -> Piece:
    """The outputs [start, stop) are made from [start, stop) of the first input, and all of the others."""
    return Piece(op, (Span(axis, start, stop), *(None for _ in inputs[1:])))


def channels_of(op: Op, inputs: Sequence[Tensor], start: int, stop: int) -> Piece:
    """Output channels, each of which is made from all of the first input and its own place in the others."""
    return Piece(op, (None, *(Span(0, start, stop) for _ in inputs[1:])))


# --- what kernels say -------------------------------------------------------------------------------------


def rows(call: Call[Any]) -> tuple[Split, ...]:
    """Along the outermost axis that is not 1, unless that is the last: runs of rows."""
    return tuple(s for s in outermost(call) if s.axis < len(call.y.shape) - 1)


def outermost(call: Call[Any]) -> tuple[Split, ...]:
    """Along the outermost axis that is not 1: runs of elements."""
    found = [axis for axis, size in enumerate(call.y.shape) if size != 1]
    return (Split(found[0]),) if found and call.y.count else ()


def rows_or_channels(step: int) -> Splits:
    """Rows; where there is one, channels at multiples of `step`."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return rows(call) or (Split(len(call.y.shape) - 1, step),)

    return splits


def rows_and_channels(step: int) -> Splits:
    """Rows, and channels at multiples of `step`: of a kernel that knows a pitch."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return (*rows(call), Split(len(call.y.shape) - 1, step))

    return splits


def rows_and_own_channels(step: int) -> Splits:
    """The same of a kernel that makes each channel from one of the input, and knows that pitch as well."""

    def splits(call: Call[Any]) -> tuple[Split, ...]:
        return (*rows(call), Split(len(call.y.shape) - 1, step, wide=True))

    return splits


def fitting(fits: Callable[[Call[Any]], bool], splits: Splits) -> Splits:
    """Where the smallest parts, at both ends, are something that the kernel fits."""

    def some(call: Call[Any]) -> tuple[Split, ...]:
        return tuple(s for s in splits(call) if all(map(fits, _ends(call, s))))

    def _ends(call: Call[Any], split: Split) -> list[Call[Any]]:
        size, places = call.y.shape[split.axis], split.places(call.y)
        ends = [(0, places[0]), (places[-1], size)] if places else []
        parts = [part_of(call, split.axis, start, stop, split.wide) for start, stop in ends]
        return [part.call for part in parts if part is not None]

    return some
