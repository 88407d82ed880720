"""Graph + CPU -> Plan: a kernel per node, an offset per tensor, and the proof that it holds."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.ir import Array, Graph, Node, State
from baretorch.ops.kernel import Call
from baretorch.ops.move import Copy
from baretorch.plan.check import check_plan
from baretorch.plan.offsets import lower_bound, place
from baretorch.plan.select import make_steps, select_kernel
from baretorch.plan.storage import places, settled
from baretorch.plan.types import Buffer, Constant, Operand, Place, Plan, StateBuffer, Step
from baretorch.targets.types import Board


def make_plan(graph: Graph, board: Board) -> Plan:
    """Plan the graph for the board; CompileError if its memory cannot hold it."""
    graph = settled(graph)
    storage = places(graph)
    steps, constants = make_steps(graph, board.chip.cpu, storage)
    steps += [_update(graph, s, storage, board) for s in graph.state if storage[s.next].buffer != s.name]
    buffers = _lifetimes(graph, steps, storage)
    placed, arena = place(buffers, board.chip.data, {s.name for s in graph.state})
    known = {c.name for c in constants}

    def constant(name: str, data: Array) -> str:
        if name not in known:
            constants.append(Constant(name, data))
            known.add(name)
        return name

    def operand(name: str) -> Operand:
        at = storage[name]
        fixed = graph[at.buffer].data
        if fixed is not None:
            return Operand(name, constant(at.buffer, fixed), constant=True)
        return Operand(name, at.buffer, False, at.offset)

    plan = Plan(
        graph,
        board.chip.cpu.name,
        tuple(steps),
        tuple(placed),
        inputs=tuple(map(operand, graph.inputs)),
        outputs=tuple(map(operand, graph.outputs)),
        state=tuple(
            StateBuffer(operand(s.name), constant(f"{s.name}.initial", s.initial) if s.initial.any() else None)
            for s in graph.state
        ),
        constants=tuple(constants),
        arena=arena,
        lower_bound=lower_bound(buffers),
    )
    check_plan(plan)
    check_budget(plan, board)
    return plan


def _update(graph: Graph, state: State, storage: dict[str, Place], board: Board) -> Step:
    """The step at the end of a run that gives the state its next value."""
    call = Call(Copy(), (graph[state.next],), (graph[state.name],))
    kernel = select_kernel(call, board.chip.cpu)
    operands = tuple(Operand(n, storage[n].buffer, False, storage[n].offset) for n in (state.next, state.name))
    return Step(kernel, call, (Node(call.op, (state.next,), (state.name,)),), kernel.params(call), operands)


def check_budget(plan: Plan, board: Board) -> None:
    """Refuse what cannot fit before anything is built; the linker has the last word on code."""
    chip = board.chip
    flash, ram = chip.memory(chip.code), chip.memory(chip.data)
    weights = plan.weight_bytes()
    if weights > flash.size:
        largest = sorted(plan.constants, key=lambda c: -c.data.nbytes)[:3]
        raise CompileError(
            f"the weights do not fit {board.name}: {flash.name} is {weights - flash.size:,} bytes too small",
            have=[f"weights {weights:,} bytes", *(f"{c.name} {c.data.nbytes:,} bytes" for c in largest)],
            need=f"at most {flash.size:,} bytes of {flash.name}",
            try_="`baretorch inspect MODEL --board all` shows the boards it fits",
        )
    room = ram.size - chip.stack_bytes
    if plan.arena > room:
        raise CompileError(
            f"the model does not fit {board.name}: {ram.name} is {plan.arena - room:,} bytes too small",
            at=peak_layers(plan),
            have=f"arena {plan.arena:,} bytes (no plan can need less than {plan.lower_bound:,})",
            need=f"at most {room:,} bytes of {ram.name}, beside {chip.stack_bytes:,} for the stack",
            try_="`baretorch inspect MODEL --board all` shows the boards it fits",
        )


def peak_layers(plan: Plan) -> list[str]:
    """The step with the most live bytes, and the tensors that are alive there, largest first."""
    best, best_live = 0, -1
    for i in range(len(plan.steps)):
        live = sum(b.size for b in plan.buffers if b.first <= i <= b.last)
        if live > best_live:
            best, best_live = i, live
    if not plan.steps:
        return []
    node = plan.steps[best].nodes[0]
    origin = plan.graph[node.outputs[0]].origin
    alive = sorted((b for b in plan.buffers if b.first <= best <= b.last), key=lambda b: -b.size)
    tensors = ", ".join(f"{b.name} {b.size:,}" for b in alive[:4])
    return [f"{str(origin) or node.outputs[0]}: {tensors}"]


def _lifetimes(graph: Graph, steps: list[Step], storage: dict[str, Place]) -> list[Buffer]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for name in graph.inputs:
        first[name] = last[name] = -1
    for i, step in enumerate(steps):
        for operand in step.operands:
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


__all__ = ["check_budget", "check_plan", "make_plan", "peak_layers"]
