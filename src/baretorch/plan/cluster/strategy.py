"""Plan for the cores of a cluster, which share each layer, and for its units.

Constants are in the scratchpad from the start if they fit there next to the arena. Otherwise a DMA engine copies them
during the run, in the tiles that make the run shortest (choose_tiles.py). Layers too large for that split their input
channels into parts (channel_parts.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from baretorch.ir.graph import Graph
from baretorch.options import Options, Weights
from baretorch.plan.capacity import excess, need_flash
from baretorch.plan.cluster.channel_parts import choose_parts
from baretorch.plan.cluster.choose_tiles import TileSearch, near_wishes
from baretorch.plan.cluster.team import LEAST_CYCLES, ClusterTeam
from baretorch.plan.memory.banks import room
from baretorch.plan.problem import Placement, Problem, Solution, Strategy, place_in_best_order
from baretorch.plan.schedule import Schedule
from baretorch.plan.types import Plan
from baretorch.targets.parts import Cluster
from baretorch.targets.types import Board

SPARE = 512  # bytes of the scratchpad that are left for the program's own data


@dataclass(frozen=True)
class ClusterCores(Strategy):
    """Plans for the cores of a cluster."""

    board: Board
    cluster: Cluster
    options: Options

    def solve(self, problem: Problem) -> Solution:
        # tiles need not be searched for constants that cannot be stored
        need_flash({c.name: c.data.nbytes for c in problem.constants.known.values()}, self.board)

        def place(schedule: Schedule, taken: int = 0) -> Placement:
            return problem.place(schedule, near_wishes(problem, schedule), taken=taken)

        best = Solution(place_in_best_order(problem.steps, place), problem.constants)
        team = ClusterTeam(self.options.shared_cores, LEAST_CYCLES)
        search = TileSearch(problem, best.placement.schedule.steps, team, self.cluster, self._room, SPARE)
        for schedule, constants in search.without_copies():
            best = Solution(place(schedule, SPARE), constants)
            if self._fits(best):
                break
        return best if self._fits(best) or not self._may_copy else search.best() or best

    def divide(self, plan: Plan, plan_of: Callable[[Graph], Plan]) -> Plan:
        """Return a plan in which layers too large for the scratchpad take their input channels in parts."""
        if not self._may_copy:
            return plan
        over = partial(excess, board=self.board, options=self.options)
        found = choose_parts(plan, plan_of, self._room, over)
        return replace(found, no_room=found.no_room | plan.no_room)

    def _fits(self, solution: Solution) -> bool:
        return solution.placement.bytes + solution.constants.bytes <= self._room

    @property
    def _room(self) -> int:
        return room(self.board.chip, self.cluster.scratchpad, self.options.used_cores) - SPARE

    @property
    def _may_copy(self) -> bool:
        """Report whether constants may come by DMA during a run."""
        chosen = self.options.weights in (None, Weights.AUTO, Weights.STREAM)
        return self.cluster.dma is not None and chosen and not self.options.app
