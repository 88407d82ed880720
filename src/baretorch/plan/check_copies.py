"""The judge of copies: what an engine writes beside the cores is nobody else's until it was awaited, and only later is
it read."""

from __future__ import annotations

from baretorch.errors import InternalError
from baretorch.plan.check_order import touch_of, touches_of
from baretorch.plan.types import Copy, Executor, Plan, Step


def check_copies(plan: Plan) -> None:
    under_way: dict[tuple[Executor, int], Copy] = {}
    there: dict[str, str] = {}  # what each buffer holds, whole
    for time, phase in enumerate(plan.phases):
        for name in dict.fromkeys(name for step in phase.steps for name in step.awaits):
            copy = next((c for c in under_way.values() if c.name == name), None)
            if copy is None:
                raise InternalError(f"a step awaits the copy {name}, which is not under way")
            if len(plan.schedule.cores) > 1 and not phase.meet:
                raise InternalError(f"one core awaits {name}, and the others do not meet it")
            del under_way[copy.executor, copy.channel]
            there[copy.target.storage] = copy.source.storage
        for copy in phase.copies:
            way = copy.executor, copy.channel
            if way in under_way:
                raise InternalError(f"{copy.name} begins before {under_way[way].name} was awaited")
            _need_whole(plan, copy)
            there.pop(copy.target.storage, None)
            under_way[way] = copy
        for step in phase.steps:
            _need_there(plan, step, there, time)
        for copy in under_way.values():
            _need_alive(plan, copy.target.storage, time)
            for step in phase.steps:
                _need_apart(plan, step, copy)
    if under_way:
        raise InternalError(f"nobody awaits {', '.join(copy.name for copy in under_way.values())}")


def _need_whole(plan: Plan, copy: Copy) -> None:
    """Of a constant of words, into a buffer of its own that is as large."""
    source, target = copy.source, copy.target
    bytes_, room = plan.layout.constant(source.storage).data.nbytes, plan.layout.buffer(target.storage).size
    if source.offset or target.offset or source.size != bytes_ or not bytes_ <= target.size <= room or target.size % 4:
        raise InternalError(f"{copy.name} copies {source.size} of {bytes_} bytes to {target.size} of {room}")


def _need_alive(plan: Plan, name: str, time: int) -> None:
    buffer = plan.layout.buffer(name)
    if not buffer.first <= time <= buffer.last:
        raise InternalError(f"buffer {name} is not there in phase {time}")


def _need_apart(plan: Plan, step: Step, copy: Copy) -> None:
    """A step and a copy that is under way."""
    written = touch_of(plan, copy)
    for touch in touches_of(plan, step):
        if touch.meets(written):
            raise InternalError(f"{step.call.op.name} touches {touch.what} where {copy.name} is being written")


def _need_there(plan: Plan, step: Step, there: dict[str, str], time: int) -> None:
    for o in step.operands:
        if o.buffer and (not o.constant or there.get(o.buffer) != o.storage):
            raise InternalError(f"{step.call.op.name} reads {o.storage} from {o.buffer}, where it is not yet")
        if o.buffer:
            _need_alive(plan, o.buffer, time)
            if o.end > plan.layout.constant(o.storage).data.nbytes:
                raise InternalError(f"{step.call.op.name} reads {o.storage} beyond its end")
