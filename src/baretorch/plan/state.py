"""Update state, which outlives a run, with its next value.

The next value is computed in the state's memory if the old value is not read any more: not after the step that begins
to write it, and not by that step unless its kernel allows that. Otherwise it is computed elsewhere and copied at the
end of the run. An output that is a next value is read there too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from baretorch.ir.graph import Graph, Node, State, fresh
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.move import Copy
from baretorch.plan.constants import Constants
from baretorch.plan.memory.storage import assign_storage
from baretorch.plan.schedule import Operand, Step, View
from baretorch.plan.select import make_step, select_kernel
from baretorch.targets.cpus import Cpu


def keep_old_state(graph: Graph) -> Graph:
    """Copy state that would be overwritten when states take their next values: an output or a next value that is itself
    state. Let every next value be a tensor of its own."""
    storage = assign_storage(graph)
    changing = {s.name for s in graph.state}
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)

    def copy_of(name: str) -> str:
        copy = fresh(graph, tensors, f"{name}_copy")
        tensors[copy] = replace(graph[name], name=copy, data=None)
        nodes.append(Node(Copy(), (name,), (copy,)))
        return copy

    outputs = tuple(copy_of(n) if storage[n].buffer in changing else n for n in graph.outputs)
    state = tuple(
        replace(s, next=copy_of(s.next)) if storage[s.next].buffer in changing - {s.name} else s for s in graph.state
    )
    return replace(graph, tensors=tensors, nodes=tuple(nodes), outputs=outputs, state=state)


def update_state(
    graph: Graph,
    steps: Sequence[Step],
    storage: Mapping[str, View],
    cpu: Cpu,
    constants: Constants,
    elsewhere: Collection[str] = (),
) -> tuple[list[Step], dict[str, View]]:
    """Return the steps that give every state its next value, and the memory of tensors then. Buffers that the user
    wants `elsewhere` do not move. A constant that becomes state is added to `constants`."""
    near = [s for s in graph.state if storage[s.next].buffer not in elsewhere]
    moved = {storage[s.next].buffer: s.name for s in near if _in_place(graph, steps, storage, s)}

    def where(buffer: str) -> str:
        return moved.get(buffer, buffer)

    def moved_to(o: Operand) -> Operand:
        return o if o.constant else replace(o, storage=where(o.storage))

    lying = {name: View(where(view.buffer), view.offset) for name, view in storage.items()}
    done = [
        replace(
            step,
            operands=tuple(map(moved_to, step.operands)),
            guards=tuple(replace(g, condition=moved_to(g.condition)) for g in step.guards),
        )
        for step in steps
    ]
    late = [s for s in graph.state if lying[s.next].buffer != s.name]
    return done + [_update(graph, s, lying, cpu, constants) for s in late], lying


def _in_place(graph: Graph, steps: Sequence[Step], storage: Mapping[str, View], state: State) -> bool:
    """Return whether the next value may be computed in the state's memory."""
    buffer = storage[state.next].buffer
    kept = [storage[s.next].buffer for s in graph.state]
    own = kept.count(buffer) == 1 and buffer not in (*graph.inputs, state.name)
    if not own or graph[buffer].data is not None or graph[buffer].bytes != graph[state.name].bytes:
        return False
    made = min(i for i, step in enumerate(steps) if any(o.storage == buffer for o in step.operands))
    last = max((i for i, step in enumerate(steps) if any(o.storage == state.name for o in step.uses)), default=-1)
    return last < made or (last == made and _may_meet(steps[made], state.name, buffer))


def _may_meet(step: Step, old: str, new: str) -> bool:
    """Return whether the step is correct if a buffer that it reads and one that it writes are the same."""
    numbers = [i for i, t in enumerate(step.call.inputs) if t.data is None]
    for i, x, distance in zip(numbers, step.reads, step.kernel.overlap(step.call), strict=True):
        for j, y in enumerate(step.writes):
            if (x.storage, y.storage) != (old, new):
                continue
            same = (i, j) in step.kernel.renews and x.offset == y.offset
            if not same and not step.may_share(distance, x.offset - y.offset):
                return False
    return True


def _update(graph: Graph, state: State, storage: Mapping[str, View], cpu: Cpu, constants: Constants) -> Step:
    """Return the step that copies a state's next value at the end of a run."""
    call = Call(Copy(), (graph[state.next],), (graph[state.name],))
    node = Node(call.op, (state.next,), (state.name,))
    return make_step(node, call, select_kernel(call, cpu), constants, storage)
