"""Compute when each buffer is alive, in phases of the schedule, and which buffers may overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from baretorch.ir.graph import Graph
from baretorch.ops.helpers.kernel import Lattice
from baretorch.ops.input_rows import row_inputs
from baretorch.plan.memory.packing import ALIGNMENT
from baretorch.plan.schedule import Schedule, Step, View
from baretorch.plan.types import Buffer, Overlap


def find_lifetimes(
    graph: Graph, schedule: Schedule, storage: Mapping[str, View], absent: Collection[str] = ()
) -> list[Buffer]:
    """Return the buffers of inputs, results, scratch and state, not placed yet. The caller holds those that are
    `absent`."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    sizes: dict[str, int] = {}
    aligns: dict[str, int] = {}
    for name in graph.inputs:
        first[name] = last[name] = -1
    for time, phase in enumerate(schedule.phases):
        for step in phase.steps:
            for operand in step.uses:
                first.setdefault(operand.storage, time)
                last[operand.storage] = time
            if step.call.op.alignment:
                touched = (*(o.storage for o in step.uses), step.scratch.name if step.scratch else "")
                aligns |= dict.fromkeys(touched, step.call.op.alignment)
            if step.scratch:
                first[step.scratch.name] = last[step.scratch.name] = time
                sizes[step.scratch.name] = step.scratch.size
    for name in graph.outputs:
        if graph[storage[name].buffer].data is None:
            last[storage[name].buffer] = len(schedule.phases)
    for s in graph.state:
        first[s.name], last[s.name] = -1, len(schedule.phases)
    return [
        Buffer(n, sizes[n] if n in sizes else graph[n].bytes, first[n], last[n], align=aligns.get(n, ALIGNMENT))
        for n in first
        if n not in absent
    ]


def lent_buffers(graph: Graph, steps: Sequence[Step], storage: Mapping[str, View]) -> frozenset[str]:
    """Return the buffers that the caller lends: inputs that no step writes and no output reads, and outputs that are a
    whole buffer with no other output in it. All other inputs and outputs are copied to and from the arena."""
    written = {o.storage for step in steps for o in step.writes}
    held = Counter(storage[name].buffer for name in graph.outputs)
    inputs = {name for name in graph.inputs if name not in written and name not in held}
    states = {s.name for s in graph.state} | {storage[s.next].buffer for s in graph.state}
    own = {
        buffer
        for name in graph.outputs
        if held[buffer := storage[name].buffer] == 1 and graph[name].bytes == graph[buffer].bytes and buffer in written
    }
    return frozenset(inputs | own - states - set(graph.inputs)) - non_core_buffers(steps) - row_inputs(graph)


def non_core_buffers(steps: Sequence[Step]) -> set[str]:
    """Return the buffers that an NPU or a unit uses, including its scratch: these do not reach all memories."""
    own = [step for step in steps if not step.executor.is_core]
    return {o.storage for step in own for o in step.uses} | {step.scratch.name for step in own if step.scratch}


def possible_overlaps(step: Step) -> list[Overlap]:
    """Return the buffers that the step's output may overlap, if they die here. A buffer that is read twice needs the
    larger distance."""
    if len(step.call.outputs) != 1 or any(o.buffer for o in step.uses):
        return []
    (y,) = step.writes
    kernel, call = step.kernel, step.call
    forward: dict[str, list[int | None]] = {}
    back: dict[str, list[int | None]] = {}
    for x, d, behind in zip(step.reads, kernel.overlap(call), kernel.behind(call), strict=True):
        forward.setdefault(x.storage, []).append(None if d is None else max(0, d + y.offset - x.offset))
        back.setdefault(x.storage, []).append(None if behind is None else max(0, behind + x.offset - y.offset))
    nearer = _nearer(step)
    found = (Overlap(x, y.storage, _largest(forward[x]), _largest(back[x]), nearer) for x in forward if x != y.storage)
    return [o for o in found if (o.distance, o.behind) != (None, None)]


def _nearer(step: Step) -> Lattice | None:
    """Return the lattice of the step's only activation, relative to the beginnings of the buffers; None if that is not
    a multiple of its step."""
    found = step.kernel.nearer(step.call)
    if found is None:
        return None
    (x,), (y,) = step.reads, step.writes
    further = y.offset - x.offset
    return None if further % found.step else replace(found, distance=max(0, found.distance + further))


def _largest(distances: Sequence[int | None]) -> int | None:
    known = [d for d in distances if d is not None]
    return max(known) if len(known) == len(distances) else None


def choose_directions(schedule: Schedule, buffers: Iterable[Buffer]) -> Schedule:
    """Return the schedule with those steps reversed that can go back, and are not correct forward with their buffers
    where they are."""
    lies = {b.name: b for b in buffers}

    def back(given: Step) -> bool:
        step = replace(given, back=False)
        if not step.kernel.back or None in step.kernel.behind(step.call):
            return False
        if not {o.storage for o in (*step.reads, *step.writes)} <= lies.keys():
            return False
        (y,) = step.writes
        to = lies[y.storage]
        for x, distance in zip(step.reads, step.kernel.overlap(step.call), strict=True):
            at = lies[x.storage]
            ahead = at.offset + x.offset - (to.offset + y.offset)
            meet = at.bank == to.bank and at.offset < to.end and to.offset < at.end
            if at is to:  # parts of one buffer
                meet = x.offset < y.end and y.offset < x.end
            if meet and not step.may_share(distance, ahead):
                return True
        return False

    phases = (replace(p, steps=tuple(replace(s, back=back(s)) for s in p.steps)) for p in schedule.phases)
    return replace(schedule, phases=tuple(phases))


def find_overlaps(schedule: Schedule, buffers: Sequence[Buffer]) -> list[Overlap]:
    """Return the pairs of buffers that may share bytes because a step reads one for the last time and writes the
    other. Steps that run at the same time have no such pairs: one would write what another still reads."""
    table = {b.name: b for b in buffers}
    return [
        o
        for time, phase in enumerate(schedule.phases)
        if len(phase.steps) == 1
        for o in possible_overlaps(phase.steps[0])
        if o.reads in table
        and o.writes in table
        and table[o.reads].last == time == table[o.writes].first
        and table[o.reads].size > 0
        and o.most(table[o.reads].size, table[o.writes].size) > 0
    ]
