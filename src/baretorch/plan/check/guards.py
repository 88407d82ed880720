"""Check guards: whatever the conditions are, a step reads only bytes that an earlier step has written, and one side of
a choose never overwrites the other's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from baretorch.errors import InternalError
from baretorch.ops.move import Choose
from baretorch.plan.schedule import Operand, Step
from baretorch.plan.types import Plan

Known: TypeAlias = Mapping[str, bool]  # conditions by the tensors that hold them
Write: TypeAlias = tuple[int, int, Known]


def check_guards(plan: Plan) -> None:
    given = (*plan.inputs, *(s.operand for s in plan.state))
    writes: dict[str, list[Write]] = {o.storage: [(0, o.size, {})] for o in given}
    for step in plan.steps:
        known: dict[str, bool] = {}
        for guard in step.guards:
            _need_written(step, guard.condition, known, writes)
            known[guard.condition.tensor] = guard.holds
        for o in step.reads:
            _need_written(step, o, known, writes)
        for o in step.writes:
            writes.setdefault(o.storage, []).append((o.offset, o.end, known))
    for o in plan.outputs:
        _need_written(None, o, {}, writes)
    _need_sides_apart(plan)


def _need_written(step: Step | None, o: Operand, known: Known, writes: Mapping[str, list[Write]]) -> None:
    if o.constant:
        return
    if not _is_written(o.offset, o.end, known, writes.get(o.storage, ())):
        who = step.call.op.name if step else "the caller"
        raise InternalError(f"{who} reads {o.tensor}, which is not made under all conditions")


def _is_written(start: int, stop: int, known: Known, writes: Iterable[Write]) -> bool:
    """Return whether all these bytes have been written if the conditions are as known, whatever the others are."""
    near = [w for w in writes if w[0] < stop and w[1] > start]
    edges = sorted({start, stop, *(edge for w in near for edge in w[:2] if start < edge < stop)})
    return all(_holds(known, [n for first, last, n in near if first <= a and b <= last]) for a, b in pairwise(edges))


def _holds(known: Known, alternatives: Iterable[Known]) -> bool:
    """Return whether at least one of these combinations of conditions always holds. Outermost conditions are tried
    first, because one that fails excludes many combinations."""
    possible = [a for a in alternatives if all(known.get(name, value) == value for name, value in a.items())]
    open_ = [[name for name in a if name not in known] for a in possible]
    if not all(open_):
        return True
    return bool(open_) and all(_holds({**known, open_[0][0]: value}, possible) for value in (True, False))


def _need_sides_apart(plan: Plan) -> None:
    """Check that a side of a choose that is computed in place is written only if that side is chosen."""
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
    """Check that the side is copied, or computed in place, only under its condition."""
    copied = [s for s in copies if s.call.x.name == name]
    for step in copied or makers:
        if (condition, holds) not in [(g.condition.tensor, g.holds) for g in step.guards]:
            raise InternalError(f"{step.call.op.name} makes {name} whether or not {condition} is {holds}")
