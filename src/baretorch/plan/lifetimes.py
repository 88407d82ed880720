"""When each buffer is alive, in phases of the schedule, and which may run into each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from baretorch.ir import Graph
from baretorch.ops.delegate import ALIGNED
from baretorch.ops.pull import pulled
from baretorch.plan.packing import ALIGNMENT
from baretorch.plan.types import Buffer, Executor, Overlap, Schedule, Step, View


def lifetimes(
    graph: Graph, schedule: Schedule, storage: Mapping[str, View], absent: Collection[str] = ()
) -> list[Buffer]:
    """The buffers, not placed yet: inputs, what the steps make, their scratch, and state. Those that are `absent` lie
    with the caller."""
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
            if step.executor is Executor.NPU:
                touched = (*(o.storage for o in step.uses), step.scratch.name if step.scratch else "")
                aligns |= dict.fromkeys(touched, ALIGNED)
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


def with_the_caller(graph: Graph, steps: Sequence[Step], storage: Mapping[str, View]) -> frozenset[str]:
    """The buffers of inputs that no step writes to, and of outputs that are such a buffer of their own and whole."""
    written = {o.storage for step in steps for o in step.writes}
    outputs = [storage[name] for name in graph.outputs]
    shared = {place.buffer for place in outputs} | of_others(steps)
    inputs = {name for name in graph.inputs if name not in written | shared}
    states = {s.name for s in graph.state} | {storage[s.next].buffer for s in graph.state}
    own = {
        place.buffer
        for name, place in zip(graph.outputs, outputs, strict=True)
        if outputs.count(place) == 1 and graph[name].bytes == graph[place.buffer].bytes and place.buffer in written
    }
    return frozenset(inputs | own - states - set(graph.inputs) - of_others(steps)) - pulled(graph)


def of_others(steps: Sequence[Step]) -> set[str]:
    """The buffers that an NPU or a unit reads or writes, its scratch among them: it does not reach everything."""
    own = [step for step in steps if not step.executor.is_core]
    return {o.storage for step in own for o in step.uses} | {step.scratch.name for step in own if step.scratch}


def reach(step: Step) -> list[Overlap]:
    """The buffers that the step's output may run into, should they die here. One that is read twice has the larger
    distance."""
    if len(step.call.outputs) != 1 or any(o.buffer for o in step.uses):
        return []
    (y,) = step.writes
    distances: dict[str, list[int | None]] = {}
    for x, d in zip(step.reads, step.kernel.overlap(step.call), strict=True):
        distances.setdefault(x.storage, []).append(None if d is None else max(0, d + y.offset - x.offset))
    found = []
    for name, each in distances.items():
        known = [d for d in each if d is not None]
        if len(known) == len(each) and name != y.storage:
            found.append(Overlap(name, y.storage, max(known)))
    return found


def find_overlaps(schedule: Schedule, buffers: Sequence[Buffer]) -> list[Overlap]:
    """The pairs of buffers of which one dies where the other is born, that may share bytes. Where several steps run at
    the same time, one would write what another still reads."""
    table = {b.name: b for b in buffers}
    return [
        o
        for time, phase in enumerate(schedule.phases)
        if len(phase.steps) == 1
        for o in reach(phase.steps[0])
        if o.reads in table
        and o.writes in table
        and table[o.reads].last == time == table[o.writes].first
        and table[o.reads].size > 0
        and o.distance < table[o.writes].size
    ]
