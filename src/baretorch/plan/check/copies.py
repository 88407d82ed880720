"""Check copies that an engine makes while the cores work.

Bytes that a copy reads or writes are not used otherwise until the copy was awaited. The data that a step reads from a
buffer has arrived there, and the data that it writes to one is copied to its home before it is read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from baretorch.errors import InternalError
from baretorch.ops.helpers.executor import Executor
from baretorch.plan.check.order import touches_of, touches_of_copy, written_by
from baretorch.plan.schedule import BackgroundCopy, Operand, Step
from baretorch.plan.types import Plan

Bytes = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass
class _World:
    """The data in buffers and at home as the phases go by."""

    brought: dict[str, Operand] = field(default_factory=dict)  # what each buffer holds since its copy arrived
    made: dict[str, Bytes] = field(default_factory=dict)  # the bytes that steps have written to each buffer
    home: Mapping[str, Bytes] = field(default_factory=dict)  # bytes at home of storages with tiles


def check_copies(plan: Plan) -> None:
    under_way: dict[tuple[Executor, int], BackgroundCopy] = {}
    outside = {o.storage for step in plan.steps for o in step.writes if o.buffer}
    world = _World(home={name: np.zeros(plan.layout.buffer(name).size, np.bool_) for name in outside})
    for time, phase in enumerate(plan.phases):
        for name in dict.fromkeys(name for step in phase.steps for name in step.awaits):
            copy = next((c for c in under_way.values() if c.name == name), None)
            if copy is None:
                raise InternalError(f"a step awaits the copy {name}, which is not under way")
            if len(plan.schedule.cores) > 1 and not phase.meet:
                raise InternalError(f"one core awaits {name}, and the others do not meet it")
            del under_way[copy.executor, copy.channel]
            _arrive(copy, world)
        for copy in phase.copies:
            way = copy.executor, copy.channel
            if way in under_way:
                raise InternalError(f"{copy.name} begins before {under_way[way].name} was awaited")
            _begin(plan, copy, world)
            for other in under_way.values():
                _need_apart_from(plan, copy, other)
            under_way[way] = copy
        for step in phase.steps:
            _need_there(plan, step, world, time)
        for copy in under_way.values():
            _need_alive(plan, copy, time)
            for step in phase.steps:
                _need_apart(plan, step, copy)
        for step in phase.steps:
            _write(plan, step, world)
    if under_way:
        raise InternalError(f"no step awaits {', '.join(copy.name for copy in under_way.values())}")


def _arrive(copy: BackgroundCopy, world: _World) -> None:
    if copy.source.buffer:
        world.home[copy.target.storage][copy.target.offset : copy.target.end] = True
    else:
        world.brought[copy.target.buffer or copy.target.storage] = copy.source


def _begin(plan: Plan, copy: BackgroundCopy, world: _World) -> None:
    source, target = copy.source, copy.target
    if source.constant:
        _need_whole(plan, copy)
        world.brought.pop(target.storage, None)
        return
    if replace(source, buffer="") != replace(target, buffer="") or bool(source.buffer) == bool(target.buffer):
        raise InternalError(f"{copy.name} copies {source} to {target}")
    name = source.buffer or target.buffer
    buffer = plan.layout.buffer(name)
    if source.offset < buffer.base or source.end > buffer.base + buffer.size:
        raise InternalError(f"{copy.name} copies more than {name} holds")
    if source.buffer:
        made = world.made.pop(name, None)
        if made is None or not made[source.offset - buffer.base : source.end - buffer.base].all():
            raise InternalError(f"{copy.name} begins before all of it was made")
    else:
        _need_home(source, world, copy.name)
        world.brought.pop(name, None)


def _need_home(o: Operand, world: _World, who: str) -> None:
    home = world.home.get(o.storage)
    if home is not None and not home[o.offset : o.end].all():
        raise InternalError(f"{who} reads {o.storage}, of which not all is at home")


def _need_whole(plan: Plan, copy: BackgroundCopy) -> None:
    """Check that a copy brings a whole constant of words to a buffer of its own that is large enough."""
    source, target = copy.source, copy.target
    bytes_, room = plan.layout.constant(source.storage).data.nbytes, plan.layout.buffer(target.storage).size
    if source.offset or target.offset or source.size != bytes_ or not bytes_ <= target.size <= room or target.size % 4:
        raise InternalError(f"{copy.name} copies {source.size} of {bytes_} bytes to {target.size} of {room}")


def _need_alive(plan: Plan, copy: BackgroundCopy, time: int) -> None:
    for o in (copy.source, copy.target):
        if not o.constant:
            _need_buffer(plan, o.buffer or o.storage, time)


def _need_buffer(plan: Plan, name: str, time: int) -> None:
    buffer = plan.layout.buffer(name)
    if not buffer.first <= time <= buffer.last:
        raise InternalError(f"buffer {name} is not there in phase {time}")


def _need_apart(plan: Plan, step: Step, copy: BackgroundCopy) -> None:
    """Check that a step touches no byte of a copy that is under way."""
    for carried in touches_of_copy(plan, copy):
        for touch in touches_of(plan, step):
            if touch.meets(carried):
                does = "written" if carried.writes else "read"
                raise InternalError(f"{step.call.op.name} touches {touch.what} where {copy.name} is being {does}")


def _need_apart_from(plan: Plan, copy: BackgroundCopy, other: BackgroundCopy) -> None:
    if any(a.meets(b) for a in touches_of_copy(plan, copy) for b in touches_of_copy(plan, other)):
        raise InternalError(f"{copy.name} begins where {other.name} is under way")


def _need_there(plan: Plan, step: Step, world: _World, time: int) -> None:
    for o in step.operands:
        if o in step.writes or not o.buffer:
            continue
        held = world.brought.get(o.buffer)
        if held is None or held.storage != o.storage or o.offset < held.offset:
            raise InternalError(f"{step.call.op.name} reads {o.storage} from {o.buffer}, where it is not yet")
        if o.end > held.end:
            raise InternalError(f"{step.call.op.name} reads {o.storage} beyond its end")
    for o in step.operands:
        if o.buffer:
            _need_buffer(plan, o.buffer, time)
        elif o not in step.writes:
            _need_home(o, world, step.call.op.name)


def _write(plan: Plan, step: Step, world: _World) -> None:
    for o, t in zip(step.writes, step.call.outputs, strict=True):
        if not o.buffer and o.storage in world.home:
            world.home[o.storage][o.offset : o.end] = True
        elif o.buffer:
            buffer = plan.layout.buffer(o.buffer)
            if o.offset < buffer.base or o.end > buffer.base + buffer.size:
                raise InternalError(f"{step.call.op.name} writes beyond {o.buffer}")
            at = written_by(step, o, t)
            made = world.made.setdefault(o.buffer, np.zeros(buffer.size, np.bool_))
            made[o.offset - buffer.base : o.end - buffer.base] |= at
            world.home[o.storage][o.offset : o.end] &= ~at
