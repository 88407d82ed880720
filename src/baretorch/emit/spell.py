"""How a plan's memory and parameters are written in C."""

from __future__ import annotations

from baretorch import __version__
from baretorch.emit.names import Method, Names, Port
from baretorch.escape import comment
from baretorch.ir import Tensor
from baretorch.plan.types import Operand, Plan


def banner(names: Names, what: str) -> str:
    """The first lines of every generated file."""
    return comment(f"{names.model}: {what}", f"Made by Baretorch {__version__} for {names.first.plan.cpu}.")


def tensor_of(method: Method, port: Port) -> Tensor:
    return method.plan.graph[port.operand.tensor]


def at(method: Method, kind: str, buffer: str, inside: int = 0) -> str:
    """A pointer into an arena, or to what the caller gave: to so many bytes inside a buffer."""
    port = method.direct.get(buffer)
    if port is not None:
        if inside == 0 and kind == tensor_of(method, port).dtype.c:
            return port.name
        const = "const " if buffer in method.plan.graph.inputs else ""
        return f"({const}{kind} *)({const}void *)(({const}uint8_t *){port.name} + {inside})"
    b = method.plan.buffer(buffer)
    arena = next(a for a in method.arenas if a.bank == b.bank)
    if arena is method.arenas[0]:
        return f"AT({kind}, {b.offset + inside})"
    return f"IN({arena.parameter}, {kind}, {b.offset + inside})"


def offset(plan: Plan, operand: Operand) -> int:
    """Bytes from the start of its arena."""
    return plan.buffer(operand.storage).offset + operand.offset


def parameters(method: Method) -> str:
    """The parameters of the run function."""
    outputs = [f"{tensor_of(method, p).dtype.c} *{p.name}" for p in method.outputs]
    return ", ".join([*_inputs(method), *outputs]) or "void"


def input_parameters(method: Method) -> str:
    """Those of the inputs alone."""
    return ", ".join(_inputs(method)) or "void"


def _inputs(method: Method) -> list[str]:
    return [f"const {'bt_row_source' if p.pulled else tensor_of(method, p).dtype.c} *{p.name}" for p in method.inputs]


def arena_parameters(method: Method) -> str:
    """Those before them, where the caller gives the memory."""
    return ", ".join(f"void *{a.parameter}" for a in method.arenas)


def words(bytes_: int) -> int:
    """The length of an array of words that holds so many bytes; C has no empty arrays."""
    return max(-(-bytes_ // 4), 1)
