"""The planner's judge: written without its code, it walks the steps and looks at bytes."""

from __future__ import annotations

from itertools import pairwise

from baretorch.errors import InternalError
from baretorch.plan.types import Plan


def check_plan(plan: Plan) -> Plan:
    """No two live buffers share a byte, every operand lies in a live buffer, and all lie in the arena."""
    buffers = {b.name: b for b in plan.buffers}
    for b in plan.buffers:
        if b.offset < 0 or b.end > plan.arena or b.offset % 4:
            raise InternalError(f"buffer {b.name} lies at {b.offset}..{b.end} of {plan.arena}")
    starts: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for b in plan.buffers:
        starts.setdefault(b.first, []).append(b.name)
        ends.setdefault(b.last, []).append(b.name)
    live: set[str] = set()
    for time in range(-1, len(plan.steps) + 1):
        live.update(starts.get(time, ()))
        row = sorted((buffers[n] for n in live if buffers[n].size), key=lambda b: b.offset)
        for low, high in pairwise(row):
            if low.end > high.offset:
                raise InternalError(f"buffers {low.name} and {high.name} overlap at step {time}")
        if 0 <= time < len(plan.steps):
            step = plan.steps[time]
            wanted = [(o.storage, o.offset + plan.graph[o.tensor].bytes) for o in step.operands if not o.constant]
            if step.scratch:
                wanted.append((step.scratch.name, step.scratch.size))
            for name, size in wanted:
                if name not in live or size > buffers[name].size:
                    raise InternalError(f"step {time} uses {name}, which is not there")
        live.difference_update(ends.get(time, ()))
    return plan
