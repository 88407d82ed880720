"""Moves over steps: permute, expand, flip, slice, place and copy as one kernel family.

A move is up to six loops, each with a step in x and in y. Few and long loops are fast: loops that continue each other
are joined, what is contiguous on both sides becomes a run, and bytes become words where everything is a multiple of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeVar

import numpy as np

from baretorch.ir.graph import Op, Shape
from baretorch.ops.helpers import overlap
from baretorch.ops.helpers.kernel import Call, Kernel, Params

LOOPS = 6
UNITS = (4, 2, 1)  # bytes that a kernel moves at once
TURNS = 1 << 20  # iterations of all loops; beyond that, input and output stay apart

O = TypeVar("O", bound=Op)


@dataclass(frozen=True)
class StridedLoop:
    """A loop of `count` iterations, with a step in x and in y."""

    count: int
    x: int
    y: int


@dataclass(frozen=True)
class Move:
    """Loops over elements of `size` bytes, from a first element on each side. All numbers count elements."""

    size: int
    loops: tuple[StridedLoop, ...]
    x_start: int = 0
    y_start: int = 0


@dataclass(frozen=True)
class Simple:
    """A Move as its kernel does it, in units of `unit` bytes: the loops, with the longest innermost because starting a
    loop costs time, and the run of units that are contiguous on both sides."""

    unit: int
    loops: tuple[StridedLoop, ...]
    run: int
    x_start: int
    y_start: int


def steps(shape: Shape) -> Shape:
    """Return the strides, in elements, of each dimension of a contiguous tensor."""
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def unit_of(*quantities: int) -> int:
    """Return the largest unit of which all these numbers of bytes are multiples."""
    return next(u for u in UNITS if gcd(*quantities) % u == 0)


def simplify(move: Move) -> Simple:
    size = move.size
    joined: list[StridedLoop] = []
    for loop in (
        *(StridedLoop(l.count, l.x * size, l.y * size) for l in move.loops if l.count != 1),
        StridedLoop(size, 1, 1),
    ):
        last = joined[-1] if joined else None
        if last and (last.x, last.y) == (loop.count * loop.x, loop.count * loop.y):
            joined[-1] = StridedLoop(last.count * loop.count, loop.x, loop.y)
        else:
            joined.append(loop)
    *outer, run = joined
    x_start, y_start = move.x_start * size, move.y_start * size
    unit = unit_of(run.count, x_start, y_start, *(n for l in outer for n in (l.x, l.y)))
    loops = tuple(StridedLoop(l.count, l.x // unit, l.y // unit) for l in sorted(outer, key=lambda l: l.count))
    return Simple(unit, loops, run.count // unit, x_start // unit, y_start // unit)


def _params(s: Simple) -> Params:
    loops = (*[StridedLoop(1, 0, 0)] * (LOOPS - len(s.loops)), *s.loops)
    return Params(
        "bt_move",
        (
            ("shape", tuple(l.count for l in loops)),
            ("x_step", tuple(l.x for l in loops)),
            ("y_step", tuple(l.y for l in loops)),
            ("x_start", s.x_start),
            ("y_start", s.y_start),
            ("run", s.run),
        ),
    )


def _overlap(s: Simple) -> int | None:
    """Return the distance of a move that reads a run completely before it writes it."""
    loops = (StridedLoop(1, 0, 0), *s.loops)
    counts = [l.count for l in loops]
    if prod(counts) > TURNS:
        return None
    turns = np.indices(counts).reshape(len(counts), -1)
    x = s.x_start + np.array([l.x for l in loops]) @ turns
    y = s.y_start + np.array([l.y for l in loops]) @ turns
    return overlap.distance(x * s.unit, np.maximum.accumulate(y + s.run) * s.unit, together=0)


def move_kernels(move: Callable[[Call[O]], Move]) -> tuple[Kernel[O], ...]:
    """Return the kernels of an operator that is a move."""

    def fits(unit: int) -> Callable[[Call[O]], bool]:
        def check(call: Call[O]) -> bool:
            s = simplify(move(call))
            return s.unit == unit and len(s.loops) <= LOOPS

        return check

    return tuple(
        Kernel(
            f"bt_move_{8 * unit}_ref",
            "move/ref.c",
            lambda call: _params(simplify(move(call))),
            fits=fits(unit),
            overlap=overlap.first_only(lambda call: _overlap(simplify(move(call)))),
        )
        for unit in UNITS
    )
