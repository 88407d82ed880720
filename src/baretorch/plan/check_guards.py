"""The judge of guards: whatever the conditions are, a step reads only bytes that a step before it has written, and one
side of a choose never overwrites the other's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from baretorch.errors import InternalError
from baretorch.ops.choose import Choose
from baretorch.plan.types import Operand, Plan, Step

Known: TypeAlias = Mapping[str, bool]  # conditions by the tensors that hold them
Write: TypeAlias = tuple[int, int, Known]


def check_guards(plan: Plan) -> None:
    graph = plan.graph
    given = (*plan.inputs, *(s.operand for s in plan.state))
    writes: dict[str, list[Write]] = {o.storage: [(0, graph[o.tensor].bytes, {})] for o in given}
    for step in plan.steps:
        count = len(step.call.outputs)
        known: dict[str, bool] = {}
        for guard in step.guards:
            _need_written(plan, step, guard.condition, known, writes)
            known[guard.condition.tensor] = guard.holds
        for o in step.operands[:-count]:
            _need_written(plan, step, o, known, writes)
        for o in step.operands[-count:]:
            span = (o.offset, o.offset + graph[o.tensor].bytes, known)
            writes.setdefault(o.storage, []).append(span)
    for o in plan.outputs:
        _need_written(plan, None, o, {}, writes)
    _need_sides_apart(plan)


def _need_written(plan: Plan, step: Step | None, o: Operand, known: Known, writes: Mapping[str, list[Write]]) -> None:
    if o.constant:
        return
    size = plan.graph[o.tensor].bytes
    if not _covered(o.offset, o.offset + size, known, writes.get(o.storage, ())):
        who = step.call.op.name if step else "the caller"
        raise InternalError(f"{who} reads {o.tensor}, which is not made under all conditions")


def _covered(start: int, stop: int, known: Known, writes: Iterable[Write]) -> bool:
    """Whether all these bytes have been written, if the conditions are as known and whatever the others are."""
    possible = [w for w in writes if all(known.get(name, value) == value for name, value in w[2].items())]
    there = np.zeros(stop - start, bool)
    for first, last, needed in possible:
        if needed.keys() <= known.keys():
            there[max(first - start, 0) : max(last - start, 0)] = True
    if there.all():
        return True
    open_ = sorted({name for _, _, needed in possible for name in needed.keys() - known.keys()})
    if not open_:
        return False
    return all(_covered(start, stop, {**known, open_[0]: value}, possible) for value in (True, False))


def _need_sides_apart(plan: Plan) -> None:
    """What lies where a choose lies, and is one of its sides, is written only if that side is chosen."""
    made: dict[str, list[Step]] = {}
    for step in plan.steps:
        for t in step.call.outputs:
            made.setdefault(t.name, []).append(step)
    for node in plan.graph.nodes:
        if isinstance(node.op, Choose):
            condition, *sides = node.inputs
            for name, holds in zip(sides, (True, False), strict=True):
                _need_side(made.get(name, ()), made.get(node.outputs[0], ()), name, condition, holds)


def _need_side(makers: Sequence[Step], copies: Sequence[Step], name: str, condition: str, holds: bool) -> None:
    """The side is copied, or made in place, and either only under its condition."""
    copied = [s for s in copies if s.call.x.name == name]
    for step in copied or makers:
        if (condition, holds) not in [(g.condition.tensor, g.holds) for g in step.guards]:
            raise InternalError(f"{step.call.op.name} makes {name} whether or not {condition} is {holds}")
