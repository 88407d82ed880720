"""Choose a kernel for each node, and pack the constants the way it wants them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir import Graph, Node, Tensor
from baretorch.ops import kernels_of
from baretorch.ops.choose import Choose
from baretorch.ops.kernel import Call, Kernel, Packed
from baretorch.ops.move import Assembled, Copy
from baretorch.ops.move import Place as Placed
from baretorch.plan.guards import Needs, side
from baretorch.plan.storage import NOTHING
from baretorch.plan.types import Constant, Guard, Operand, Place, Scratch, Step
from baretorch.targets.types import Cpu
from baretorch.text import attributes


def select_kernel(call: Call[Any], cpu: Cpu) -> Kernel[Any]:
    """The first kernel of the op that the CPU can run and that fits."""
    for kernel in kernels_of(call.op):
        if kernel.needs.met_by(cpu.features) and kernel.fits(call):
            return kernel
    raise CompileError(
        f"{call.op.name}: no kernel computes this",
        at=str(call.y.origin) or None,
        have=[", ".join(map(repr, call.inputs)), *filter(None, [attributes(call.op)])],
        try_=f"`baretorch ops {call.op.name}` lists what is supported",
    )


def make_steps(
    graph: Graph, cpu: Cpu, storage: Mapping[str, Place], needs: Mapping[str, Needs] = NOTHING
) -> tuple[list[Step], list[Constant]]:
    """A step per kernel call, and all constants the steps read. `storage` says where each tensor lies, `needs` on what
    conditions it is computed."""
    constants: dict[str, Constant] = {}
    by_content: dict[tuple[str, bytes], str] = {}  # layers that share weights share them in flash
    steps = []

    def operand(t: Tensor) -> Operand:
        if t.data is None:
            return Operand(t.name, storage[t.name].buffer, False, storage[t.name].offset)
        constants.setdefault(t.name, Constant(t.name, t.data))
        return Operand(t.name, t.name, constant=True)

    def packed(p: Packed, call: Call[Any]) -> Operand:
        content = (p.data.dtype.name, p.data.tobytes())
        name = by_content.get(content) or _packed_name(p, call, constants)
        if name not in constants:
            constants[name] = Constant(name, p.data)
            by_content[content] = name
        return Operand(name, name, constant=True)

    def add(node: Node, call: Call[Any], needed: Needs) -> None:
        if isinstance(call.op, (Placed, Copy)) and _in_place(call, storage):
            return
        kernel = select_kernel(call, cpu)
        operands = [operand(t) for t in call.inputs if t.data is None or not kernel.pack]
        if kernel.pack:
            operands += [packed(p, call) for p in kernel.pack(call)]
        operands += [operand(t) for t in call.outputs]
        size = kernel.scratch(call)
        scratch = Scratch(f"{node.outputs[0]}.scratch", size) if size else None
        guards = tuple(Guard(operand(graph[condition]), holds) for condition, holds in needed)
        steps.append(Step(kernel, call, (node,), kernel.params(call), tuple(operands), scratch, guards=guards))

    sides = _sides(graph, needs)
    made = {t.name for t in graph.tensors.values()} - set(graph.producer())
    for node in graph.nodes:
        whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        if node.op.view(whole.inputs) is None and not isinstance(node.op, Choose):
            for call in node.op.pieces(whole) if isinstance(node.op, Assembled) else (whole,):
                add(node, call, needs.get(node.outputs[0], ()))
        made.update(node.outputs)
        for ready in [s for s in sides if made.issuperset(s.after)]:
            add(ready.node, ready.call, ready.needs)
            sides.remove(ready)
    return steps, list(constants.values())


@dataclass(frozen=True, eq=False)
class _Side:
    """The step that takes one side of a choose. It comes as soon as the tensors that it waits for are there, so that
    they need not be kept."""

    node: Node
    call: Call[Any]
    needs: Needs
    after: frozenset[str]


def _sides(graph: Graph, needs: Mapping[str, Needs]) -> list[_Side]:
    sides = []
    for node in graph.nodes:
        if isinstance(node.op, Choose):
            whole = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
            for holds in (True, False):
                needed, call = side(needs, node, holds), node.op.side(whole, holds)
                sides.append(_Side(node, call, needed, frozenset((call.x.name, *(name for name, _ in needed)))))
    return sides


def _in_place(call: Call[Any], storage: Mapping[str, Place]) -> bool:
    """The input already lies where the step would write it."""
    (x,), (y,) = call.inputs, call.outputs
    start = call.op.start * prod(y.shape[call.op.axis + 1 :]) * y.dtype.size if isinstance(call.op, Placed) else 0
    return x.data is None and storage[x.name] == Place(storage[y.name].buffer, storage[y.name].offset + start)


def _packed_name(packed: Packed, call: Call[Any], constants: Mapping[str, Constant]) -> str:
    """`<layer>.weight`, after the layer that uses it."""
    stem = call.y.origin.path or call.y.name
    name, n = f"{stem}.{packed.role}", 1
    while name in constants:
        n += 1
        name = f"{stem}.{packed.role}_{n}"
    return name
