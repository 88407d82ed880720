"""Plan for two cores that share large layers: each layer is a phase, in which both cores compute a part of it."""

from __future__ import annotations

from typing import Any

from baretorch.ops.helpers.kernel import Call, Kernel
from baretorch.plan.constants import Constants
from baretorch.plan.one_core import place_in_best_order
from baretorch.plan.problem import Problem, Solution, Strategy
from baretorch.plan.schedule import Phase, Schedule
from baretorch.plan.shares import Team, best_cut, make_shares

LEAST = 3000  # operations of a layer that two cores share: a meeting in memory takes some 50 instructions of each
PER_OUTPUT = 6  # operations of an output besides its products
PER_INPUT = 2  # operations of an input: both cores read all of it where they share the output channels


class CorePair(Team):
    """Two cores that meet in memory."""

    def work(self, call: Call[Any], kernel: Kernel[Any]) -> float:
        read = sum(t.count for t in call.inputs if t.data is None)
        products: int = call.op.macs(call.inputs, call.outputs)
        return products + PER_OUTPUT * call.y.count + PER_INPUT * read


class TwoCores(Strategy):
    """Plans for a pair of cores."""

    def solve(self, problem: Problem) -> Solution:
        steps = place_in_best_order(problem.steps, problem.place).schedule.steps
        pair, constants = CorePair(2, LEAST), Constants(problem.constants.apart)
        shares = (make_shares(step, best_cut(step, pair), problem.storage, constants, pair) for step in steps)
        schedule = Schedule(tuple(Phase(tuple(each)) for each in shares), pair.cores)
        return Solution(problem.place(schedule), constants)
