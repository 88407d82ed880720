"""Choose a kernel for each node, and pack the constants the way it wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir.graph import Graph, Node, Op, Tensor
from baretorch.ir.text import attributes
from baretorch.ops import kernels_of
from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.ops.move import Assembled, Choose
from baretorch.plan.constants import Constants, constants_of
from baretorch.plan.guards import Conditions, side
from baretorch.plan.memory.storage import NOTHING
from baretorch.plan.schedule import Guard, Operand, Scratch, Step, View
from baretorch.targets.cpus import Cpu
from baretorch.units import Unit


def select_kernel(call: Call[Any], cpu: Cpu, units: Sequence[Unit] = ()) -> Kernel[Any]:
    """Return the kernel of the first unit that takes the call, else the first of the op that fits the call and CPU."""
    for unit in units:
        if (found := unit.kernel_of(call)) is not None:
            return found
    for kernel in kernels_of(call.op):
        if kernel.needs.met_by(cpu.features) and kernel.fits(call):
            return kernel
    raise CompileError(
        f"{call.op.name}: no kernel computes this",
        at=str(call.y.origin) or None,
        have=[", ".join(map(repr, call.inputs)), *filter(None, [attributes(call.op)])],
        try_=f"`baretorch ops {call.op.name}` lists what is supported",
    )


def operand_of(t: Tensor, storage: Mapping[str, View]) -> Operand:
    """Return the operand of a tensor in RAM."""
    return Operand(t.name, storage[t.name].buffer, t.bytes, storage[t.name].offset)


def make_step(
    node: Node, call: Call[Any], kernel: Kernel[Any], constants: Constants, where: Mapping[str, View]
) -> Step:
    """Return the call of a kernel. `where` is the memory of each tensor."""
    stored = constants_of(call, kernel, constants)
    given = iter(stored)
    operands = [
        operand_of(t, where) if t.data is None else next(given)
        for i, t in enumerate(call.inputs)
        if t.data is None or not kernel.pack or i < kernel.as_they_are
    ]
    if skipped := kernel.skips(call):
        operands[0] = replace(operands[0], offset=operands[0].offset + skipped, size=operands[0].size - skipped)
    operands += [*given, *(operand_of(t, where) for t in call.outputs)]
    size = kernel.scratch(call)
    scratch = Scratch(f"{node.outputs[0]}.scratch", size) if size else None
    return Step(kernel, call, (node,), kernel.params(call), tuple(operands), scratch, executor=kernel.executor)


def make_steps(
    graph: Graph,
    cpu: Cpu,
    storage: Mapping[str, View],
    constants: Constants,
    needs: Mapping[str, Conditions] = NOTHING,
    units: Callable[[Call[Any]], Sequence[Unit]] = lambda call: (),
) -> list[Step]:
    """Return a step per kernel call, and store the constants that they read. `storage` is the memory of each tensor,
    `needs` are the conditions on which it is computed, and `units` may compute a call instead of the CPU."""
    steps = []

    def add(node: Node, call: Call[Any], needed: Conditions) -> None:
        if _in_place(call, storage):
            return
        step = make_step(node, call, select_kernel(call, cpu, units(call)), constants, storage)
        guards = tuple(Guard(operand_of(graph[condition], storage), holds) for condition, holds in needed)
        steps.append(replace(step, guards=guards))

    sides = _sides(graph, needs)
    made = {t.name for t in graph.tensors.values()} - set(graph.producer())
    for node in graph.nodes:
        whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if node.op.view(whole.inputs) is None:
            for call in node.op.pieces(whole) if isinstance(node.op, Assembled) else (whole,):
                add(node, call, needs.get(node.outputs[0], ()))
        made.update(node.outputs)
        for ready in [s for s in sides if made.issuperset(s.after)]:
            add(ready.node, ready.call, ready.needs)
            sides.remove(ready)
    return steps


@dataclass(frozen=True, eq=False)
class _Side:
    """The step that copies one side of a choose. It follows the tensors that it reads directly, so that they need not
    be kept."""

    node: Node
    call: Call[Any]
    needs: Conditions
    after: frozenset[str]


def _sides(graph: Graph, needs: Mapping[str, Conditions]) -> list[_Side]:
    sides = []
    for node in graph.nodes:
        if isinstance(node.op, Choose):
            whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
            for holds in (True, False):
                needed, call = side(needs, node, holds), node.op.side(whole, holds)
                sides.append(_Side(node, call, needed, frozenset((call.x.name, *(name for name, _ in needed)))))
    return sides


def _in_place(call: Call[Any], storage: Mapping[str, View]) -> bool:
    """Return whether the input already is where the step would write it."""
    op: Op = call.op
    start = op.destination(call.inputs, call.y)
    if start is None or call.x.data is not None:
        return False
    y = storage[call.y.name]
    return storage[call.x.name] == View(y.buffer, y.offset + start)
