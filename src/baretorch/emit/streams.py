"""Generates copies of constants by an engine during a run; kernels/stream.h declares the calls."""

from __future__ import annotations

from baretorch.emit.c import literal
from baretorch.emit.names import CNames, Method
from baretorch.emit.spell import at
from baretorch.escape import comment
from baretorch.plan.schedule import Await, BackgroundCopy, Step


def streams(names: CNames) -> bool:
    return any(m.plan.schedule.copies for m in names.methods.values())


def headers(names: CNames) -> list[str]:
    """Return the headers for copies."""
    if not streams(names):
        return []
    return ["team.h"] if names.team else ["stream.h"]


def copying(names: CNames, method: Method, step: BackgroundCopy | Await) -> str:
    """Return the call that starts a copy, or waits for the end of a copy or of a unit's work."""
    if isinstance(step, Await):
        return _awaiting(names, step.what)
    target = at(method, method.plan.layout.place(step.target), "void")
    if names.team:
        source = at(method, method.plan.layout.place(step.source), "void")
        return f"    bt_team_copy({step.channel}, {target}, {source}, {step.source.size});"
    return f"    bt_stream_begin({target}, {method.constants[step.source.storage]}, {step.target.size});"


def _awaiting(names: CNames, what: BackgroundCopy | Step) -> str:
    if isinstance(what, Step):
        unit, y = dict(what.params.fields)["unit"], what.call.y
        return f"    {what.kernel.awaits}({literal(unit)}); {comment(str(y.origin) or y.name)}"
    call = f"bt_team_await({what.channel})" if names.team else "bt_stream_wait()"
    return f"    {call}; {comment(what.source.storage)}"
