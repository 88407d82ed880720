"""Formats a plan's memory, parameters and copies as C. kernels/stream.h and kernels/team.h declare calls for copies."""

from __future__ import annotations

from baretorch.emit.c import literal
from baretorch.emit.names import CNames, CPort, Method
from baretorch.escape import comment
from baretorch.ir.graph import Tensor
from baretorch.plan.schedule import Await, BackgroundCopy, Step
from baretorch.plan.types import FromStream, InArena, InFlash, InRam, Place, WithCaller
from baretorch.version import __version__


def banner(names: CNames, what: str) -> str:
    """Return the first lines of a generated file."""
    made = f"Made by Baretorch {__version__} for {names.first.plan.cpu}"
    return comment(f"{names.model}: {what}", *([f"{made}:", names.command] if names.command else [f"{made}."]))


def port_tensor(method: Method, port: CPort) -> Tensor:
    return method.plan.graph[port.operand.tensor]


def at(method: Method, place: Place, kind: str) -> str:
    """Return a pointer to a place, of a C type."""
    match place:
        case InFlash(constant, offset) | InRam(constant, _, offset):
            each = method.plan.layout.constant(constant).data.itemsize
            return method.constants[constant] + (f" + {offset // each}" if offset else "")
        case FromStream(name):
            return method.callers[name].name
        case WithCaller(buffer, offset):
            port = method.callers[buffer]
            if offset == 0 and kind == port_tensor(method, port).dtype.c:
                return port.name
            const = "const " if buffer in method.plan.graph.inputs else ""
            return f"({const}{kind} *)({const}void *)(({const}uint8_t *){port.name} + {offset})"
        case InArena(bank, offset):
            arena = method.arena(bank)
            main = arena is method.arenas[0]
            return f"AT({kind}, {offset})" if main else f"IN({arena.parameter}, {kind}, {offset})"


def parameters(method: Method) -> str:
    """Return the parameters of the run function."""
    return ", ".join(declare(method, p) for p in method.ports) or "void"


def input_parameters(method: Method) -> str:
    """Return the run function's parameters for the inputs."""
    return ", ".join(declare(method, p) for p in method.inputs) or "void"


def declare(method: Method, port: CPort) -> str:
    kind = "bt_row_source" if port.pulled else port_tensor(method, port).dtype.c
    return f"{kind} *{port.name}" if port.name in method.written else f"const {kind} *{port.name}"


def parameters_in(method: Method) -> str:
    """Return the parameters of the function that runs in the caller's memory."""
    return ", ".join([*(f"void *{a.parameter}" for a in method.arenas), *(declare(method, p) for p in method.ports)])


def word_count(bytes_: int) -> int:
    """Return the length of an array of words that holds this number of bytes; C has no empty arrays."""
    return max(-(-bytes_ // 4), 1)


def copy_headers(names: CNames) -> list[str]:
    """Return the headers for copies."""
    if not any(m.plan.schedule.copies for m in names.methods.values()):
        return []
    return ["team.h"] if names.team else ["stream.h"]


def copy_call(names: CNames, method: Method, step: BackgroundCopy | Await) -> str:
    """Return the call that starts a copy, or waits for the end of a copy or of a unit's work."""
    if isinstance(step, Await):
        return _await_call(names, step.what)
    target = at(method, method.plan.layout.place(step.target), "void")
    if names.team:
        source = at(method, method.plan.layout.place(step.source), "void")
        return f"    bt_team_copy({step.channel}, {target}, {source}, {step.source.size});"
    return f"    bt_stream_begin({target}, {method.constants[step.source.storage]}, {step.target.size});"


def _await_call(names: CNames, what: BackgroundCopy | Step) -> str:
    if isinstance(what, Step):
        unit, y = dict(what.params.fields)["unit"], what.call.y
        return f"    {what.kernel.awaits}({literal(unit)}); {comment(str(y.origin) or y.name)}"
    call = f"bt_team_await({what.channel})" if names.team else "bt_stream_wait()"
    return f"    {call}; {comment(what.source.storage)}"
