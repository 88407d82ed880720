"""Check inputs and outputs: memory that the caller lends has one owner and is large enough, inputs in it are only read,
and every byte of every output has been written when the run returns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from baretorch.errors import InternalError
from baretorch.ir.graph import Tensor
from baretorch.ops.move import Change, PlaceSlice
from baretorch.plan.check.order import written_by
from baretorch.plan.schedule import Operand, Step
from baretorch.plan.types import Plan

Bytes = np.ndarray[tuple[int], np.dtype[np.bool_]]


def check_ports(plan: Plan) -> None:
    for ports, names in ((plan.inputs, plan.graph.inputs), (plan.outputs, plan.graph.outputs)):
        if tuple(o.tensor for o in ports) != names:
            raise InternalError(f"the plan has ports for {[o.tensor for o in ports]}, and the graph has {list(names)}")
    _need_one_home(plan)
    _need_one_owner(plan)
    _need_inside(plan)
    _need_inputs_unwritten(plan)
    _need_alive(plan)
    _need_outputs_written(plan)


def _need_one_home(plan: Plan) -> None:
    """Check that a port is as large as its tensor, and in exactly one place: a constant, an arena, the caller's memory
    or a stream of rows."""
    layout = plan.layout
    stored, placed = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for c in layout.constants:
        stored[c.name].append(c.data.nbytes)
    for b in layout.buffers:
        placed[b.name].append(b.size)
    for port in (*plan.inputs, *plan.outputs):
        size, name = plan.graph[port.tensor].bytes, port.storage
        if port.size != size or port.offset < 0:
            raise InternalError(
                f"port {port.tensor} has {port.size} bytes from {port.offset} on, and its tensor has {size}"
            )
        away = [port.end] * ((name in layout.lent) + (name in layout.streamed))
        homes = stored[name] if port.constant else [*placed[name], *away]
        if len(homes) != 1 or port.end > homes[0]:
            raise InternalError(f"port {port.tensor} is not in one place that is large enough")
        if name in layout.streamed and not port.constant and (port not in plan.inputs or port.tensor != name):
            raise InternalError(f"port {port.tensor} is not an input that comes in rows")


def _need_one_owner(plan: Plan) -> None:
    """Check that each buffer of the caller belongs to one port, which is all of it, and never holds state."""
    owners = defaultdict[str, list[Operand]](list)
    for o in (*plan.inputs, *plan.outputs):
        if not o.constant:
            owners[o.storage].append(o)
    state = {s.operand.storage for s in plan.state}
    for name in plan.layout.lent:
        if len(owners[name]) != 1:
            raise InternalError(f"{len(owners[name])} ports own {name}, which the caller lends")
        if owners[name][0].offset:
            raise InternalError(f"port {owners[name][0].tensor} is only a part of {name}, which the caller lends")
        if name in state:
            raise InternalError(f"the caller lends {name}, which is state")


def _need_inside(plan: Plan) -> None:
    """Check that steps and copies stay within the caller's buffers."""
    room = {o.storage: o.size for o in (*plan.inputs, *plan.outputs) if o.storage in plan.layout.lent}
    for who, o in _touched_operands(plan):
        if o.storage in room and not o.constant and (o.offset < 0 or o.end > room[o.storage]):
            raise InternalError(
                f"{who} touches bytes {o.offset}..{o.end} of {o.storage}, of which the caller lends {room[o.storage]}"
            )


def _need_inputs_unwritten(plan: Plan) -> None:
    """Check that inputs in the caller's memory, whole or in rows, are only read."""
    absent = plan.layout.lent | plan.layout.streamed
    given = {o.storage for o in plan.inputs if o.storage in absent}
    written = {o.storage for step in plan.steps for o in step.writes}
    written |= {c.target.storage for c in plan.schedule.copies.values() if not c.target.buffer}
    if given & written:
        raise InternalError(f"a step writes to the caller's input {', '.join(sorted(given & written))}")


def _need_alive(plan: Plan) -> None:
    """Check that inputs and state in an arena are alive before the run, and outputs and state after it."""
    end = len(plan.phases)
    lives = {b.name: (b.first, b.last) for b in plan.layout.buffers}
    state = [s.operand for s in plan.state]
    for o in (*plan.inputs, *state):
        if not o.constant and lives.get(o.storage, (-1, end))[0] > -1:
            raise InternalError(f"{o.tensor} is not there before the run")
    for o in (*plan.outputs, *state):
        if not o.constant and lives.get(o.storage, (-1, end))[1] < end:
            raise InternalError(f"{o.tensor} is not there after the run")


def _need_outputs_written(plan: Plan) -> None:
    """Check that all bytes of outputs are written. check_guards checks steps that run under a condition."""
    ends: dict[str, int] = {}
    for o in plan.outputs:
        if not o.constant:
            ends[o.storage] = max(ends.get(o.storage, 0), o.end)
    made = {name: np.zeros(end, np.bool_) for name, end in ends.items()}
    for o in (*plan.inputs, *(s.operand for s in plan.state)):  # these are written before the run
        if o.storage in made and not o.constant:
            made[o.storage][o.offset : o.end] = True
    for step in plan.steps:
        for o, t in zip(step.writes, step.call.outputs, strict=True):
            if o.storage in made and not o.buffer:
                own = made[o.storage][o.offset : o.end]
                own |= _written_bytes(step, o, t)[: own.size]
    for copy in plan.schedule.copies.values():
        if copy.source.buffer and copy.target.storage in made:
            made[copy.target.storage][copy.target.offset : copy.target.end] = True
    for o in plan.outputs:
        if not o.constant and not made[o.storage][o.offset : o.end].all():
            missing = int((~made[o.storage][o.offset : o.end]).sum())
            raise InternalError(f"no step writes {missing} of the {o.size} bytes of output {o.tensor}")


def _written_bytes(step: Step, o: Operand, t: Tensor) -> Bytes:
    """Return which bytes of an operand a step writes, whatever its inputs are: some rows or channels, or all."""
    if not isinstance(step.call.op, Change):
        return written_by(step, o, t)
    touched = np.zeros(t.shape, np.bool_)
    if isinstance(step.call.op, PlaceSlice):  # the places of other changes depend on an index
        step.call.op.write(touched, np.ones(step.call.x.shape, np.bool_))
    return np.repeat(touched.reshape(-1), t.dtype.size)


def _touched_operands(plan: Plan) -> Iterator[tuple[str, Operand]]:
    for step in plan.steps:
        yield from ((step.call.op.name, o) for o in (*step.uses, *step.operands))
    for copy in plan.schedule.copies.values():
        yield from ((copy.name, o) for o in (copy.source, copy.target))
