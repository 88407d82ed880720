"""Graph + CPU -> Plan: a kernel per node, an offset per tensor, and the proof that it holds."""

from __future__ import annotations

from baretorch.errors import CompileError
from baretorch.ir import Graph
from baretorch.ops.kernel import Call
from baretorch.plan.check import check_plan
from baretorch.plan.offsets import aligned, lower_bound, place
from baretorch.plan.select import is_view, make_steps
from baretorch.plan.types import Buffer, Constant, Operand, Plan, Step
from baretorch.targets.types import Board


def make_plan(graph: Graph, board: Board) -> Plan:
    """Plan the graph for the board; CompileError if its memory cannot hold it."""
    storage = _storage(graph)
    steps, constants = make_steps(graph, board.chip.cpu, storage)
    buffers = _lifetimes(graph, steps, storage)
    placed, arena = place(buffers, board.chip.data)
    known = {c.name for c in constants}
    outputs = []
    for name in graph.outputs:
        root = storage[name]
        fixed = graph[root].data
        if fixed is not None and root not in known:
            constants.append(Constant(root, fixed))
            known.add(root)
        outputs.append(Operand(name, root, constant=fixed is not None))
    plan = Plan(
        graph,
        board.chip.cpu.name,
        tuple(steps),
        tuple(placed),
        tuple(constants),
        tuple(Operand(n, storage[n], constant=False) for n in graph.inputs),
        tuple(outputs),
        arena,
        lower_bound(buffers),
    )
    check_plan(plan)
    check_budget(plan, board)
    return plan


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


def _storage(graph: Graph) -> dict[str, str]:
    """The tensor whose memory each tensor is: itself, or for a view what it looks at."""
    storage = {name: name for name in graph.tensors}
    for node in graph.nodes:
        if is_view(node):
            storage[node.outputs[0]] = storage[node.inputs[0]]
    return storage


def _lifetimes(graph: Graph, steps: list[Step], storage: dict[str, str]) -> list[Buffer]:
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for name in graph.inputs:
        first[name] = last[name] = -1
    sizes = {}
    for i, step in enumerate(steps):
        for operand in step.operands:
            if not operand.constant:
                first.setdefault(operand.storage, i)
                last[operand.storage] = i
        if step.scratch:
            (node,) = step.nodes
            first[step.scratch] = last[step.scratch] = i
            call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
            sizes[step.scratch] = step.kernel.scratch(call)
    for name in graph.outputs:
        if graph[storage[name]].data is None:
            last[storage[name]] = len(steps)
    return [Buffer(n, sizes[n] if n in sizes else graph[n].bytes, first[n], last[n]) for n in first]


__all__ = ["aligned", "check_budget", "check_plan", "make_plan", "peak_layers"]
