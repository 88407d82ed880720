"""Two cores share the work of a model.

A layer whose kernel can make parts of its output is cut in two, of about the same work, and both cores make their part
in the same phase. What is small, or cannot be cut, core 0 does alone. The cores meet before a phase in which one would
read what the other has written, or write what it still reads: where each only goes on with what it has made itself, as
a 1x1 convolution behind another does row by row, they need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from baretorch.ops.cut import Part, part_of
from baretorch.ops.kernel import Call
from baretorch.plan.select import Constants, make_step
from baretorch.plan.types import Executor, InArena, Layout, Operand, Phase, Schedule, Step, View, WithCaller

CORES = (Executor.CORE0, Executor.CORE1)
LEAST = 3000  # operations of a layer that is worth a meeting, which takes some 50 instructions of each core
PER_OUTPUT = 6  # operations that an output takes beside its products
PER_INPUT = 2  # and an input: both cores read all of it where they share the output channels


def shared(steps: Sequence[Step], storage: Mapping[str, View], constants: Constants) -> Schedule:
    """The steps on two cores, with `constants` packed for the parts."""
    phases = tuple(Phase(tuple(_on_cores(step, storage, constants))) for step in steps)
    return Schedule(phases, CORES)


def _on_cores(step: Step, storage: Mapping[str, View], constants: Constants) -> Iterator[Step]:
    parts = _halves(step)
    if parts is None:
        whole = make_step(step.nodes[0], step.call, step.kernel, constants, storage)
        yield replace(whole, guards=step.guards)
        return
    for executor, part in zip(CORES, parts, strict=True):
        made = make_step(step.nodes[0], part.call, step.kernel, constants, storage)
        moves = iter((*part.offsets, part.at))
        operands = [o if o.constant else _moved(o, next(moves)) for o in made.operands]
        operands[-1] = replace(operands[-1], size=_extent(part.call))
        scratch = made.scratch and replace(made.scratch, name=f"{made.scratch.name}.{executor.name.lower()}")
        yield replace(made, operands=tuple(operands), scratch=scratch, executor=executor)


def _moved(operand: Operand, bytes_: int) -> Operand:
    return replace(operand, offset=operand.offset + bytes_)


def _extent(call: Call[Any]) -> int:
    """Bytes from the first that a call writes to the last."""
    y = call.y
    rows = y.count // y.shape[-1]
    return ((rows - 1) * call.pitch + y.shape[-1]) * y.dtype.size if call.pitch else y.bytes


def _halves(step: Step) -> tuple[Part, Part] | None:
    """The two parts of a step that take the least time, if that is worth it."""
    call = step.call
    in_place = {o.storage for o in step.reads} & {o.storage for o in step.writes}
    if step.guards or in_place or len(call.outputs) != 1 or _work(call) < LEAST:
        return None
    cuts = [parts for split in step.kernel.splits(call) for parts in _cuts(call, split.axis, split.places(call.y))]
    best = min(cuts, key=_longer, default=None)
    return best if best is not None and _work(call) - _longer(best) >= LEAST / 4 else None


def _cuts(call: Call[Any], axis: int, places: range) -> Iterator[tuple[Part, Part]]:
    """At the places next to the middle, if the operator can be cut there."""
    size = call.y.shape[axis]
    for at in sorted(places, key=lambda place: abs(2 * place - size))[:2]:
        first, second = part_of(call, axis, 0, at), part_of(call, axis, at, size)
        if first is not None and second is not None:
            yield first, second


def _longer(parts: tuple[Part, Part]) -> int:
    return max(_work(part.call) for part in parts)


def _work(call: Call[Any]) -> int:
    """About how many operations a call takes."""
    read = sum(t.count for t in call.inputs if t.data is None)
    products: int = call.op.macs(call.inputs, call.outputs)
    return products + PER_OUTPUT * call.y.count + PER_INPUT * read


def with_meetings(schedule: Schedule, layout: Layout) -> Schedule:
    """The schedule with as few meetings as its bytes allow."""
    phases: list[Phase] = []
    open_: list[tuple[Executor, list[_Bytes]]] = []  # what each has touched since the last meeting
    for phase in schedule.phases:
        touched = [(step.executor, list(_touched(step, layout))) for step in phase.steps]
        meet = any(a is not b and _clash(x, y) for a, x in touched for b, y in open_)
        phases.append(replace(phase, meet=meet))
        open_ = touched if meet else open_ + touched
    return replace(schedule, phases=tuple(phases))


_Bytes: TypeAlias = tuple[str, int, int, bool]  # memory, first, behind the last, written


def _clash(some: Sequence[_Bytes], others: Sequence[_Bytes]) -> bool:
    pairs = ((a, b) for a in some for b in others if a[0] == b[0] and (a[3] or b[3]))
    return any(a[1] < b[2] and b[1] < a[2] for a, b in pairs)


def _touched(step: Step, layout: Layout) -> Iterator[_Bytes]:
    for i, o in enumerate(step.uses):
        writes = i >= len(step.uses) - len(step.writes)
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
