"""Plan for one core: steps run one after the other, in the order that needs the least memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from baretorch.plan.memory.order import least_memory_order
from baretorch.plan.problem import Placement, Problem, Solution, Strategy
from baretorch.plan.schedule import Schedule, Step, one_by_one


class OneCore(Strategy):
    """Plans for one core, which may start an NPU."""

    def solve(self, problem: Problem) -> Solution:
        return Solution(place_in_best_order(problem.steps, problem.place), problem.constants)


def place_in_best_order(steps: Sequence[Step], place: Callable[[Schedule], Placement]) -> Placement:
    """Place the buffers of the steps in the given order, or in a better one."""
    given = place(one_by_one(steps))
    better = least_memory_order(steps, given.buffers)
    if all(a is b for a, b in zip(better, steps, strict=True)):
        return given
    return min(given, place(one_by_one(better)), key=lambda placement: placement.bytes)
