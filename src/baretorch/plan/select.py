"""Choose a kernel for each node, and pack the constants the way it wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir import Graph, Node
from baretorch.ops import kernels_of
from baretorch.ops.kernel import Call, Kernel, Packed
from baretorch.ops.layout import Reshape
from baretorch.plan.types import Constant, Operand, Step
from baretorch.targets.types import Cpu
from baretorch.text import attributes


def is_view(node: Node) -> bool:
    """The node's output is its input's memory, seen in another shape."""
    return isinstance(node.op, Reshape)


def select_kernel(graph: Graph, node: Node, cpu: Cpu) -> Kernel[Any]:
    """The first kernel of the op that the CPU can run and that fits."""
    call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
    for kernel in kernels_of(node.op):
        if kernel.needs <= cpu.features and kernel.fits(call):
            return kernel
    raise CompileError(
        f"{node.op.name}: no kernel computes this".strip(),
        at=str(graph[node.outputs[0]].origin) or None,
        have=[", ".join(map(repr, call.inputs)), *filter(None, [attributes(node.op)])],
        try_=f"`baretorch ops {node.op.name}` lists what is supported",
    )


def make_steps(graph: Graph, cpu: Cpu, storage: Mapping[str, str]) -> tuple[list[Step], list[Constant]]:
    """A step per node that computes, and all constants the steps read. `storage` names each tensor's buffer."""
    constants: dict[str, Constant] = {}
    by_content: dict[tuple[str, bytes], str] = {}  # layers that share weights share them in flash
    steps = []
    for node in graph.nodes:
        if is_view(node):
            continue
        kernel = select_kernel(graph, node, cpu)
        call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        operands = []
        packed = kernel.pack(call) if kernel.pack else ()
        for t in call.inputs:
            if t.data is None:
                operands.append(Operand(t.name, storage[t.name], constant=False))
            elif not kernel.pack:
                constants.setdefault(t.name, Constant(t.name, t.data))
                operands.append(Operand(t.name, t.name, constant=True))
        for p in packed:
            content = (p.data.dtype.name, p.data.tobytes())
            name = by_content.get(content) or _packed_name(node, p, call, constants)
            if name not in constants:
                constants[name] = Constant(name, p.data)
                by_content[content] = name
            operands.append(Operand(name, name, constant=True))
        operands += [Operand(n, storage[n], constant=False) for n in node.outputs]
        scratch = f"{node.outputs[0]}.scratch" if kernel.scratch(call) else None
        steps.append(Step(kernel, (node,), kernel.params(call), tuple(operands), scratch))
    return steps, list(constants.values())


def _packed_name(node: Node, packed: Packed, call: Call[Any], constants: Mapping[str, Constant]) -> str:
    """`<layer>.weight`, after the layer that uses it."""
    stem = call.outputs[0].origin.path or node.outputs[0]
    name, n = f"{stem}.{packed.role}", 1
    while name in constants:
        n += 1
        name = f"{stem}.{packed.role}_{n}"
    return name
