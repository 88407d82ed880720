"""Check a finished plan without the planner's code: walk the steps and look at bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Tensor
from baretorch.ops.delegate import Delegate
from baretorch.ops.helpers.executor import NPU
from baretorch.ops.int8.qsums import QFromSums
from baretorch.ops.move import PlaceSlice
from baretorch.plan.check.copies import check_copies
from baretorch.plan.check.guards import check_guards
from baretorch.plan.check.order import check_order
from baretorch.plan.check.partial_sums import check_sums
from baretorch.plan.check.ports import check_ports
from baretorch.plan.schedule import Step
from baretorch.plan.types import Buffer, InArena, Plan


def check_plan(plan: Plan) -> Plan:
    """Return the plan if it is correct; else raise InternalError.

    No two live buffers share a byte, unless a step's kernel allows it. Every operand is in a live buffer, and every
    buffer is inside its bank. Steps that run at the same time do not touch the same byte, except to read it. Data that
    is copied during the run has arrived when it is read. Inputs and outputs are as the caller needs them.
    """
    layout = plan.layout
    buffers = {b.name: b for b in layout.buffers}
    check_ports(plan)
    sizes = {bank.name: bank.size for bank in layout.banks}
    for b in layout.buffers:
        if b.offset < 0 or b.end > sizes[b.bank] or b.offset % b.align or b.align % 4:
            raise InternalError(f"buffer {b.name} is at {b.offset}..{b.end} of {sizes[b.bank]}")
    starts: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for b in layout.buffers:
        starts.setdefault(b.first, []).append(b.name)
        ends.setdefault(b.last, []).append(b.name)
    live: dict[str, int] = {}  # and how many bytes
    for time in range(-1, len(plan.phases) + 1):
        live.update((name, buffers[name].size) for name in starts.get(time, ()))
        steps = plan.phases[time].steps if 0 <= time < len(plan.phases) else ()
        below: list[Buffer] = []  # those that reach the current one
        for b in sorted((buffers[n] for n, size in live.items() if size), key=lambda b: (b.bank, b.offset)):
            below = [other for other in below if other.end > b.offset and other.bank == b.bank]
            for other in below:
                if not _may_share(steps, time, b, other) and not _may_share(steps, time, other, b):
                    raise InternalError(f"buffers {other.name} and {b.name} overlap in phase {time}")
            below.append(b)
        for step in steps:
            _need_reached(plan, step)
            _need_there(plan, step, live)
            _need_right_in_itself(step)
        for name in ends.get(time, ()):
            live.pop(name, None)
    _need_old_state_unread(plan)
    check_order(plan)
    check_copies(plan)
    if any(step.guards for step in plan.steps):
        check_guards(plan)
    if any(isinstance(step.call.op, QFromSums) for step in plan.steps):
        check_sums(plan)
    return plan


def _need_there(plan: Plan, step: Step, live: Mapping[str, int]) -> None:
    """Check that everything a step touches is alive, and as large as the step expects."""
    absent = plan.layout.lent | plan.layout.streamed  # the caller has these
    wanted = [(o.storage, o.end) for o in step.uses]
    if step.scratch:
        wanted.append((step.scratch.name, step.scratch.size))
    for name, size in wanted:
        if name not in absent and size > live.get(name, -1):
            raise InternalError(f"{step.call.op.name} uses {name}, which is not there")


def _need_reached(plan: Plan, step: Step) -> None:
    """Check that everything an NPU touches is in a bank that it reaches, if one is known yet, at a multiple of 16, and
    that only delegates run on it."""
    op = step.call.op
    if isinstance(op, Delegate) != (step.executor == NPU):
        raise InternalError(f"{op.name} runs on {step.executor.name}")
    if not isinstance(op, Delegate):
        return
    places = [plan.layout.place(o) for o in (*step.reads, *step.writes)]
    if step.scratch is None or step.scratch.size < op.scratch:
        raise InternalError(f"{op.name} has less scratch than its {op.scratch} bytes")
    for place in (*places, plan.layout.scratch(step.scratch)):
        if not isinstance(place, InArena) or (op.bank and place.bank != op.bank) or place.offset % 16:
            raise InternalError(f"the NPU does not reach {place}")


def _need_old_state_unread(plan: Plan) -> None:
    """Check that no step reads the old value of a state after its buffer was overwritten."""
    graph = plan.graph
    seen = {s.name: s.name for s in graph.state}  # the state and views of it
    for node in graph.nodes:
        if node.inputs and node.inputs[0] in seen and node.op.view(graph.of(node.inputs)) is not None:
            seen[node.outputs[0]] = seen[node.inputs[0]]
    changed: set[str] = set()
    for step in plan.steps:
        for o in step.reads:
            if seen.get(o.tensor) in changed:
                raise InternalError(f"{step.call.op.name} reads {o.tensor} after its state has changed")
        changed.update(o.storage for o in step.writes)


def _need_right_in_itself(step: Step) -> None:
    """Check that a step goes back only if its kernel can, and that it may read and write the same bytes of a buffer if
    it does."""
    if step.back and (not step.kernel.back or None in step.distances):
        raise InternalError(f"{step.call.op.name} cannot go back through {step.call.y.name}")
    numbers = [i for i, t in enumerate(step.call.inputs) if t.data is None]
    for i, x, distance in zip(numbers, step.reads, step.distances, strict=True):
        for j, y in enumerate(step.writes):
            if x.storage != y.storage or (x.offset == y.offset and (i, j) in step.kernel.renews):
                continue
            first, last = _written_span(step, step.call.outputs[j])
            apart = x.end <= y.offset + first or y.offset + last <= x.offset
            if not apart and not _far_enough(step, distance, x.offset - y.offset):
                raise InternalError(f"{step.call.op.name} may not read {x.tensor} where it writes {y.tensor}")


def _written_span(step: Step, y: Tensor) -> tuple[int, int]:
    """Return the first byte that a step writes of its output, and the end of the last."""
    if not isinstance(step.call.op, PlaceSlice):
        return 0, y.bytes
    touched = np.zeros(y.shape, bool)
    step.call.op.write(touched, np.ones(step.call.x.shape, bool))
    at = np.flatnonzero(touched)
    return int(at[0]) * y.dtype.size, (int(at[-1]) + 1) * y.dtype.size


def _far_enough(step: Step, distance: int | None, ahead: int) -> bool:
    """Return whether the kernel is correct if its input begins `ahead` bytes after its output; the kernel requires
    `distance`."""
    if distance is not None and (-ahead if step.back else ahead) >= distance:
        return True
    pixels = None if step.back else step.kernel.nearer(step.call)
    return pixels is not None and pixels.distance <= ahead and not ahead % pixels.step


def _may_share(steps: Sequence[Step], time: int, old: Buffer, new: Buffer) -> bool:
    """Return whether the only step of the phase is the last to need `old` and the first to write `new`, and its kernel
    is correct with both where they are."""
    if not old.last == time == new.first or len(steps) != 1:
        return False
    (step,) = steps
    writes = [o for o in step.writes if o.storage == new.name]
    near = [(o, d) for o, d in zip(step.reads, step.distances, strict=True) if o.storage == old.name]
    return bool(near and writes) and all(
        _far_enough(step, d, old.offset + x.offset - (new.offset + y.offset)) for x, d in near for y in writes
    )
