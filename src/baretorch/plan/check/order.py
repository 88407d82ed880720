"""Check steps that run at the same time: between two meetings, steps of different executors touch the same byte only if
both read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Tensor
from baretorch.plan.schedule import BackgroundCopy, Operand, Step
from baretorch.plan.types import InArena, Plan, WithCaller


@dataclass(frozen=True)
class Touch:
    """Bytes of a memory: `rows` stretches of `width` bytes, `pitch` apart, from `start` on."""

    memory: str
    start: int
    rows: int
    width: int
    pitch: int
    writes: bool
    what: str

    @property
    def end(self) -> int:
        return self.start + (self.rows - 1) * self.pitch + self.width

    def meets(self, other: Touch) -> bool:
        """Return whether both touch some byte, and one of them writes it."""
        if self.memory != other.memory or not (self.writes or other.writes):
            return False
        low, high = max(self.start, other.start), min(self.end, other.end)
        return low < high and bool((self.bytes(low, high) & other.bytes(low, high)).any())

    def bytes(self, low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which of the bytes from `low` to `high` it touches."""
        at = np.arange(low - self.start, high - self.start)
        inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = (at >= 0) & (at < self.end - self.start)
        return inside & (at % self.pitch < self.width)


def check_order(plan: Plan) -> None:
    if len({step.executor for step in plan.steps}) < 2:
        return  # all steps run in order
    open_: list[tuple[Step, list[Touch]]] = []  # since the executors met
    for phase in plan.phases:
        executors = [step.executor for step in phase.steps]
        if len(set(executors)) < len(executors):
            raise InternalError("an executor has two steps at the same time")
        if phase.meet:
            open_ = []
        for step in phase.steps:
            touches = list(touches_of(plan, step))
            for earlier, others in open_:
                if earlier.executor != step.executor:
                    _need_apart(step, touches, earlier, others)
            open_.append((step, touches))
        for copy in phase.copies:  # cores may not use its bytes yet; check_copies checks steps that start later
            carried = list(touches_of_copy(plan, copy))
            for step, touches in open_:
                if step not in phase.steps and step.executor != copy.executor.host:
                    _need_apart_from(copy, carried, step, touches)


def touches_of_copy(plan: Plan, copy: BackgroundCopy) -> Iterator[Touch]:
    for o in (copy.source, copy.target):
        yield from _touch(plan, o, o.size, o.size, o is copy.target, copy.name)


def written_by(step: Step, o: Operand, t: Tensor) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which bytes of an operand a step writes: it may write only some channels of each pixel."""
    pitch = step.call.pitch * t.dtype.size
    return np.arange(o.size) % pitch < t.shape[-1] * t.dtype.size if pitch else np.ones(o.size, np.bool_)


def _need_apart_from(copy: BackgroundCopy, carried: list[Touch], step: Step, touches: list[Touch]) -> None:
    for touch in touches:
        if any(touch.meets(c) for c in carried):
            raise InternalError(f"{copy.name} begins while {step.call.op.name} may still touch {touch.what} there")


def _need_apart(step: Step, touches: list[Touch], earlier: Step, others: list[Touch]) -> None:
    for a in touches:
        for b in others:
            if a.meets(b):
                raise InternalError(
                    f"{step.call.op.name} on {step.executor.name} and {earlier.call.op.name} on "
                    f"{earlier.executor.name} touch the same bytes of {a.memory}, as {a.what} and {b.what}, "
                    "and nothing orders them"
                )


def touches_of(plan: Plan, step: Step) -> Iterator[Touch]:
    brought = (o for o in step.operands if o.constant and o.buffer)  # by copies
    spots = {(o.storage, o.offset, o.size) for o in step.writes}  # updates in place: the write covers the read
    reads = (o for o in step.reads if (o.storage, o.offset, o.size) not in spots)
    for o in (*(g.condition for g in step.guards), *reads, *brought):
        yield from _touch(plan, o, o.size, o.size, False)
    for o, t in zip(step.writes, step.call.outputs, strict=True):
        width = t.shape[-1] * t.dtype.size if step.call.pitch else o.size
        yield from _touch(plan, o, width, step.call.pitch * t.dtype.size or o.size, True)
    if step.scratch:
        place = plan.layout.scratch(step.scratch)
        yield Touch(place.bank, place.offset, 1, step.scratch.size, step.scratch.size, True, step.scratch.name)


def _touch(plan: Plan, o: Operand, width: int, pitch: int, writes: bool, what: str = "") -> Iterator[Touch]:
    rows = -(-o.size // pitch) if pitch else 0
    match plan.layout.place(o):
        case InArena(bank, offset) if rows:
            yield Touch(bank, offset, rows, width, pitch, writes, what or o.tensor)
        case WithCaller(buffer, offset) if rows:
            yield Touch(f"the caller's {buffer}", offset, rows, width, pitch, writes, what or o.tensor)
        case _:
            pass
