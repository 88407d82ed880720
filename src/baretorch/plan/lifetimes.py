"""When each buffer is alive, and which may run into each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from baretorch.ir import Graph
from baretorch.ops.pull import pulled
from baretorch.plan.types import Buffer, Overlap, Place, Step


def lifetimes(
    graph: Graph, steps: Sequence[Step], storage: Mapping[str, Place], direct: Collection[str] = ()
) -> list[Buffer]:
    """The buffers, not placed yet: inputs, what the steps make, their scratch, and state. Those in `direct` lie with
    the caller and take no bytes here."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    sizes = dict.fromkeys((*pulled(graph), *direct), 0)
    for name in graph.inputs:
        first[name] = last[name] = -1
    for i, step in enumerate(steps):
        for operand in step.uses:
            if not operand.constant:
                first.setdefault(operand.storage, i)
                last[operand.storage] = i
        if step.scratch:
            first[step.scratch.name] = last[step.scratch.name] = i
            sizes[step.scratch.name] = step.scratch.size
    for name in graph.outputs:
        if graph[storage[name].buffer].data is None:
            last[storage[name].buffer] = len(steps)
    for s in graph.state:
        first[s.name], last[s.name] = -1, len(steps)
    return [Buffer(n, sizes[n] if n in sizes else graph[n].bytes, first[n], last[n]) for n in first]


def with_the_caller(graph: Graph, steps: Sequence[Step], storage: Mapping[str, Place]) -> frozenset[str]:
    """The buffers of inputs that no step writes to, and of outputs that are such a buffer of their own and whole."""
    written = {o.storage for step in steps for o in step.operands[len(step.operands) - len(step.call.outputs) :]}
    outputs = [storage[name] for name in graph.outputs]
    shared = {place.buffer for place in outputs}
    inputs = {name for name in graph.inputs if name not in written | shared}
    states = {s.name for s in graph.state} | {storage[s.next].buffer for s in graph.state}
    own = {
        place.buffer
        for name, place in zip(graph.outputs, outputs, strict=True)
        if outputs.count(place) == 1 and graph[name].bytes == graph[place.buffer].bytes and place.buffer in written
    }
    return frozenset(inputs | own - states - set(graph.inputs)) - pulled(graph)


def reach(step: Step) -> list[Overlap]:
    """The buffers that the step's output may run into, should they die here. One that is read twice has the larger
    distance."""
    if len(step.call.outputs) != 1:
        return []
    *operands, y = step.operands
    inputs = [o for o in operands if not o.constant]
    distances: dict[str, list[int | None]] = {}
    for x, d in zip(inputs, step.kernel.overlap(step.call), strict=True):
        distances.setdefault(x.storage, []).append(None if d is None else max(0, d + y.offset - x.offset))
    found = []
    for name, each in distances.items():
        known = [d for d in each if d is not None]
        if len(known) == len(each) and name != y.storage:
            found.append(Overlap(name, y.storage, max(known)))
    return found


def find_overlaps(steps: Sequence[Step], buffers: Sequence[Buffer]) -> list[Overlap]:
    """The pairs of buffers of which one dies where the other is born, that may share bytes."""
    table = {b.name: b for b in buffers}
    return [
        o
        for i, step in enumerate(steps)
        for o in reach(step)
        if table[o.reads].last == i == table[o.writes].first
        and table[o.reads].size > 0
        and o.distance < table[o.writes].size
    ]
