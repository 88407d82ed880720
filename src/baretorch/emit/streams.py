"""Constants that an engine copies to RAM while the cores go on; kernels/stream.h has the calls."""

from __future__ import annotations

from baretorch.emit.names import Method, Names
from baretorch.emit.spell import at
from baretorch.escape import comment
from baretorch.plan.types import Await, Copy


def streams(names: Names) -> bool:
    return any(m.plan.schedule.copies for m in names.methods.values())


def copying(method: Method, step: Copy | Await) -> str:
    """The call that begins a copy, or waits for its end."""
    if isinstance(step, Await):
        return f"    bt_stream_wait(); {comment(step.copy.source.storage)}"
    target = at(method, method.plan.layout.place(step.target), "void")
    return f"    bt_stream_begin({target}, {method.constants[step.source.storage]}, {step.target.size});"
