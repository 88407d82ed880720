"""State, which outlives a run: how its next value comes to where it lies.

A next value is made right there if nobody reads the value before it any more: not after the step that begins to make
it, and not by that step but where its kernel allows it. Else it is made elsewhere and copied at the end of the run.
An output that is a next value is read there too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from baretorch.ir.graph import Graph, Node, State, fresh
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.move import Copy
from baretorch.plan.constants import Constants
from baretorch.plan.memory.storage import views
from baretorch.plan.schedule import Operand, Step, View
from baretorch.plan.select import make_step, select_kernel
from baretorch.targets.cpus import Cpu


def keep_old_state(graph: Graph) -> Graph:
    """Copy what would be overwritten when the state takes its next value: an output or another's next value that is
    itself a piece of state; and let every state's next value be a tensor of its own."""
    storage = views(graph)
    changing = {s.name for s in graph.state}
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)

    def copied(name: str) -> str:
        copy = fresh(graph, tensors, f"{name}_copy")
        tensors[copy] = replace(graph[name], name=copy, data=None)
        nodes.append(Node(Copy(), (name,), (copy,)))
        return copy

    outputs = tuple(copied(n) if storage[n].buffer in changing else n for n in graph.outputs)
    state = tuple(
        replace(s, next=copied(s.next)) if storage[s.next].buffer in changing - {s.name} else s for s in graph.state
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
    """The steps that leave every state with its next value, and where tensors lie then. Buffers that the user wants
    elsewhere stay what they are. A constant that state becomes is added to `constants`."""
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
    """Whether the next value may be made where the state lies."""
    buffer = storage[state.next].buffer
    kept = [storage[s.next].buffer for s in graph.state]
    own = kept.count(buffer) == 1 and buffer not in (*graph.inputs, state.name)
    if not own or graph[buffer].data is not None or graph[buffer].bytes != graph[state.name].bytes:
        return False
    made = min(i for i, step in enumerate(steps) if any(o.storage == buffer for o in step.operands))
    last = max((i for i, step in enumerate(steps) if any(o.storage == state.name for o in step.uses)), default=-1)
    return last < made or (last == made and _may_meet(steps[made], state.name, buffer))


def _may_meet(step: Step, old: str, new: str) -> bool:
    """Whether the step is right if the buffers that it reads and writes are one."""
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
    """The step at the end of a run that gives the state its next value."""
    call = Call(Copy(), (graph[state.next],), (graph[state.name],))
    node = Node(call.op, (state.next,), (state.name,))
    return make_step(node, call, select_kernel(call, cpu), constants, storage)
