"""Say which buffers must be in the scratchpad of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from baretorch.plan.memory.banks import Wishes
from baretorch.plan.problem import Problem
from baretorch.plan.schedule import Schedule
from baretorch.plan.types import Buffer


def near(
    problem: Problem,
    schedule: Schedule,
    copies: Sequence[Buffer] = (),
    far: Mapping[str, str] | None = None,
    anywhere: bool = False,
) -> Wishes:
    """Return the wishes for a schedule: scratch and buffers for copies are where all cores are quick, and what
    units use is where they reach, or `anywhere`. Buffers that are `far` are in the bank named there."""
    names = [b.name for b in copies]
    names += [step.scratch.name for step in schedule.steps if step.scratch]
    theirs = [step for step in schedule.steps if step.kernel.unit and not anywhere]
    names += [o.storage for step in theirs for o in step.uses if not o.buffer]
    wishes = problem.wishes
    return replace(wishes, of={**dict.fromkeys(names, wishes.main), **wishes.of, **(far or {})})
