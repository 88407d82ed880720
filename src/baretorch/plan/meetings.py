"""Find the phases before which executors must meet.

They meet before a phase in which one would read what another has written, or write what another still reads. Where each
only continues with what it has made itself, as a 1x1 convolution after another does row by row, they need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from baretorch.ops.helpers.executor import Executor
from baretorch.plan.schedule import BackgroundCopy, Phase, Schedule, Step
from baretorch.plan.types import InArena, Layout, WithCaller


def with_meetings(schedule: Schedule, layout: Layout) -> Schedule:
    """Return the schedule with as few meetings as its bytes allow."""
    phases: list[Phase] = []
    open_: list[tuple[Executor, list[_Bytes]]] = []  # what each has touched since the last meeting
    for phase in schedule.phases:
        touched = [(step.executor, list(_touched(step, layout))) for step in phase.steps]
        touched += [(copy.executor, list(_carried(copy, layout))) for copy in phase.copies]
        meet = any(a != b and _clash(x, y) for a, x in touched for b, y in open_)
        meet = meet or any(step.awaits for step in phase.steps)  # core 0 waits for all
        phases.append(replace(phase, meet=meet))
        open_ = touched if meet else open_ + touched
    return replace(schedule, phases=tuple(phases))


_Bytes: TypeAlias = tuple[str, int, int, bool]  # memory, first, after the last, written


def _clash(some: Sequence[_Bytes], others: Sequence[_Bytes]) -> bool:
    pairs = ((a, b) for a in some for b in others if a[0] == b[0] and (a[3] or b[3]))
    return any(a[1] < b[2] and b[1] < a[2] for a, b in pairs)


def _carried(copy: BackgroundCopy, layout: Layout) -> Iterator[_Bytes]:
    for o in (copy.source, copy.target):
        place = layout.place(o)
        if isinstance(place, InArena):
            yield place.bank, place.offset, place.offset + o.size, o is copy.target


def _touched(step: Step, layout: Layout) -> Iterator[_Bytes]:
    brought = tuple(o for o in step.operands if o.buffer)
    for o, writes in (*((o, False) for o in (*brought, *step.uses)), *((o, True) for o in step.writes)):
        match layout.place(o):
            case InArena(bank, offset):
                yield bank, offset, offset + o.size, writes
            case WithCaller(buffer, offset):
                yield f"the caller's {buffer}", offset, offset + o.size, writes
            case _:
                pass
    if step.scratch:
        place = layout.scratch(step.scratch)
        yield place.bank, place.offset, place.offset + step.scratch.size, True
