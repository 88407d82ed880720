"""Prepare a graph for planning, and plan it for one core.

A Problem has a kernel for each node and a buffer for each tensor, but no times and no offsets. A Strategy turns it into
a Solution: a schedule, and a place for every buffer. OneCore is here, TwoCores in shares.py, and ClusterCores in
cluster/strategy.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from baretorch.ir.graph import Graph
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.input_rows import row_inputs
from baretorch.options import Buffers, Options
from baretorch.plan.constants import Constants
from baretorch.plan.guards import find_guards
from baretorch.plan.memory.banks import Placed, Wishes, make_wishes, place_in_banks, room
from baretorch.plan.memory.lifetimes import find_lifetimes, find_overlaps, lent_buffers, non_core_buffers
from baretorch.plan.memory.offsets import lower_bound
from baretorch.plan.memory.order import least_memory_order
from baretorch.plan.memory.storage import assign_storage
from baretorch.plan.schedule import Schedule, Step, View, one_by_one
from baretorch.plan.select import make_steps
from baretorch.plan.state import keep_old_state, update_state
from baretorch.plan.types import Buffer, Overlap, Plan
from baretorch.targets.types import Board
from baretorch.units import Unit

if TYPE_CHECKING:  # other chips need no tiles
    from baretorch.plan.cluster.types import Tiles

UnitsFor: TypeAlias = Callable[[Call[Any]], Sequence[Unit]]  # that may compute a call


@dataclass(frozen=True)
class Placement:
    """A schedule, and where its buffers are."""

    schedule: Schedule
    buffers: list[Buffer]
    placed: Placed
    lower_bound: int

    @property
    def bytes(self) -> int:
        return sum(bank.size for bank in self.placed.banks)


@dataclass(frozen=True)
class Solution:
    """A placement, the constants as its steps read them, and the tiles in which they come to a scratchpad."""

    placement: Placement
    constants: Constants
    tiles: Tiles | None = None


@dataclass(frozen=True)
class Problem:
    """The steps of a graph for a board, in the graph's order, and the buffer of each tensor."""

    graph: Graph
    board: Board
    cores: int  # that the image uses
    steps: Sequence[Step]
    storage: Mapping[str, View]
    constants: Constants
    wishes: Wishes
    lent: frozenset[str]  # buffers of the caller

    def place(
        self, schedule: Schedule, wishes: Wishes | None = None, more: Sequence[Buffer] = (), taken: int = 0
    ) -> Placement:
        """Place the buffers of a schedule, and `more`, in banks; other data takes `taken` bytes of the main bank."""
        return self._place(schedule, wishes or self.wishes, *self._demand(schedule, more), taken)

    def place_if_room(self, schedule: Schedule, wishes: Wishes, more: Sequence[Buffer], taken: int) -> Placement | None:
        """Place buffers; None if the lower bound of those that must be in the main bank is more than it has."""
        buffers, overlaps = self._demand(schedule, more)
        of, main, state = wishes.of, wishes.main, self.state
        stay = [b for b in buffers if of.get(b.name, "" if b.name not in state else main) == main]
        names = {b.name for b in stay}
        least = lower_bound(stay, [o for o in overlaps if o.reads in names and o.writes in names])
        if least + taken > room(self.board.chip, main, self.cores):
            return None
        return self._place(schedule, wishes, buffers, overlaps, taken)

    @property
    def state(self) -> frozenset[str]:
        return frozenset(s.name for s in self.graph.state)

    @property
    def kept(self) -> frozenset[str]:
        """The buffers that are read after the run."""
        return self.state | {self.storage[name].buffer for name in self.graph.outputs}

    def _demand(self, schedule: Schedule, more: Sequence[Buffer]) -> tuple[list[Buffer], list[Overlap]]:
        absent = self.lent | row_inputs(self.graph)
        buffers = [*find_lifetimes(self.graph, schedule, self.storage, absent), *more]
        return buffers, find_overlaps(schedule, buffers)

    def _place(
        self, schedule: Schedule, wishes: Wishes, buffers: list[Buffer], overlaps: list[Overlap], taken: int
    ) -> Placement:
        placed = place_in_banks(buffers, overlaps, self.state, self.board.chip, wishes, self.cores, taken)
        return Placement(schedule, buffers, placed, lower_bound(buffers, overlaps))


def make_problem(graph: Graph, board: Board, options: Options, units: UnitsFor) -> Problem:
    """Choose a kernel for each node, and a buffer for each tensor."""
    found = find_guards(keep_old_state(graph))
    graph, storage = found.graph, assign_storage(found.graph, found.needs)
    constants = Constants(board.chip.cpu.flash_apart)
    steps = make_steps(graph, board.chip.cpu, storage, constants, found.needs, units)
    wished = make_wishes(graph, storage, board, options.place, non_core_buffers(steps))
    steps, storage = update_state(graph, steps, storage, board.chip.cpu, constants, wished.of)
    lent = lent_buffers(graph, steps, storage) if options.buffers is Buffers.CALLER else frozenset()
    return Problem(graph, board, options.used_cores, steps, storage, constants, wished, lent)


class Strategy(ABC):
    """Plans for one kind of executors."""

    @abstractmethod
    def solve(self, problem: Problem) -> Solution:
        """Schedule the steps, and place their buffers."""

    def divide(self, plan: Plan, plan_of: Callable[[Graph], Plan]) -> Plan:
        """Return the plan, or a better one of the same graph with layers taken apart."""
        return plan


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
