"""Plan a graph for a board: a kernel per node, an offset per tensor, and a check of the result. Read this file first.

problem.py prepares the graph. A strategy orders the steps on one core, a pair of cores or a cluster, and places their
buffers (memory/). check/ verifies the result without the planner's code. If the arena is too large, a part of the model
runs in bands of rows (bands.py). capacity.py has the errors. Later, weights/ may copy constants to RAM.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from baretorch.ir.graph import Graph, State
from baretorch.ops.helpers.executor import NPU
from baretorch.ops.input_rows import row_inputs
from baretorch.options import DEFAULT, Input, Options, Units
from baretorch.plan import capacity
from baretorch.plan.bands import choose_bands
from baretorch.plan.check.plan import check_plan
from baretorch.plan.constants import Constants
from baretorch.plan.memory.lifetimes import choose_directions
from baretorch.plan.problem import OneCore, Problem, Solution, Strategy, UnitsFor, make_problem
from baretorch.plan.schedule import Operand, Schedule, Step
from baretorch.plan.select import operand_of
from baretorch.plan.shares import TwoCores, with_meetings
from baretorch.plan.types import Layout, Plan, StateBuffer
from baretorch.targets.types import Board
from baretorch.units import Unit, units_of


def make_plan(graph: Graph, board: Board, options: Options = DEFAULT) -> Plan:
    """Plan the graph for the board; raise CompileError if its memory cannot hold it."""
    return Planner(board, options, choose_strategy(board, options)).plan(graph)


def choose_strategy(board: Board, options: Options) -> Strategy:
    """Return the strategy for the cores that the options ask for."""
    if (cluster := board.chip.cluster) is not None:
        from baretorch.plan.cluster.strategy import ClusterCores  # imported here because other chips do not need it

        return ClusterCores(board, cluster, options)
    return TwoCores() if options.shared_cores > 1 else OneCore()


@dataclass(frozen=True)
class Planner:
    """Plans graphs for a board."""

    board: Board
    options: Options
    strategy: Strategy

    def plan(self, graph: Graph) -> Plan:
        """Plan the graph; raise CompileError if the board's memory cannot hold it."""
        plan = self.strategy.divide(self._plan_with_units(graph), self._plan_with_units)
        capacity.need_flash(capacity.stored_by_name(plan), self.board)
        plan = self._plan_in_bands(plan)
        capacity.need_room(plan, self.board, self.options)
        capacity.need_arrays(plan, self.board)
        return plan

    def _plan_with_units(self, graph: Graph) -> Plan:
        """Plan the graph with all layers on units that they take, as far as there is room for the constants. Layers
        with the most bytes are the first to be left to the cores."""
        left: set[str] = set()
        while True:
            plan = self._plan_whole(graph, lambda call: () if call.y.name in left else self._units)
            theirs = [step for step in plan.steps if step.kernel.unit]
            if not theirs or capacity.fits(plan, self.board, self.options):
                return replace(plan, no_room=frozenset(left))
            left.add(max(theirs, key=_bytes_of).call.y.name)

    def _plan_in_bands(self, plan: Plan) -> Plan:
        """Return the plan, or if it is too large or rows of the input are asked for, one with layers in bands."""
        limit = capacity.arena_limit(plan, self.board, self.options)
        rows = self.options.input is Input.ROWS
        if not rows and plan.arena <= limit:
            return plan
        fits = partial(capacity.fits, board=self.board, options=self.options)
        smaller = choose_bands(plan, self._plan_whole, limit, rows, fits)
        capacity.need_rows(smaller, self.options)
        best = smaller if rows else min(plan, smaller, key=lambda p: p.arena)
        capacity.need_ram(best, self.options)
        if best.bands is None or not self._units:
            return best
        found = self._plan_with_units(best.graph)  # bands were chosen without units, whose data needs more room
        return replace(found, bands=best.bands) if fits(found) else best

    @property
    def _units(self) -> tuple[Unit, ...]:
        """Return the accelerator units that may be used."""
        return units_of(self.board.chip) if self.options.units is Units.AUTO else ()

    def _plan_whole(self, graph: Graph, units: UnitsFor = lambda call: ()) -> Plan:
        """Plan the graph as it is."""
        problem = make_problem(graph, self.board, self.options, units)
        return check_plan(_assemble(problem, self.strategy.solve(problem)))


def _bytes_of(step: Step) -> int:
    """Return the bytes of a unit's step that must be near it: activations, and constants that no copy brings."""
    return sum(o.size for o in (*step.uses, *(o for o in step.operands if o.constant and not o.buffer)))


def _assemble(problem: Problem, solution: Solution) -> Plan:
    graph, chip = problem.graph, problem.board.chip
    placement, constants = solution.placement, solution.constants
    placed, schedule = placement.placed, choose_directions(placement.schedule, placement.placed.buffers)
    inputs = tuple(_operand(name, problem, constants) for name in graph.inputs)
    outputs = tuple(_operand(name, problem, constants) for name in graph.outputs)
    state = tuple(StateBuffer(_operand(s.name, problem, constants), _initial(s, constants)) for s in graph.state)
    apart = dict.fromkeys(sorted(constants.as_they_are), chip.data) if constants.apart else {}
    layout = Layout(
        tuple(placed.buffers),
        tuple(constants.known.values()),
        placed.banks,
        placement.lower_bound,
        placed.optimal,
        problem.lent,
        frozenset(row_inputs(graph)),
        _copies(schedule, problem.board) | apart,
        chip.cpu.flash_apart,
    )
    if len(schedule.cores) > 1 or any(step.kernel.unit for step in schedule.steps):
        schedule = with_meetings(schedule, layout)
    return Plan(graph, chip.cpu.name, schedule, layout, inputs, outputs, state, tiles=solution.tiles)


def _operand(name: str, problem: Problem, constants: Constants) -> Operand:
    """Return the operand for a tensor: an input, output or state as the caller has it, or a constant, which is
    stored if necessary."""
    graph, view = problem.graph, problem.storage[name]
    data = graph[view.buffer].data
    if data is None:
        return operand_of(graph[name], problem.storage)
    return replace(constants.store_plain(view.buffer, data), tensor=name, offset=view.offset, size=graph[name].bytes)


def _initial(state: State, constants: Constants) -> str | None:
    """Store the initial value of a state as a constant, unless it is all zeros, and return the constant's name."""
    return constants.store_plain(f"{state.name}.initial", state.initial).storage if state.initial.any() else None


def _copies(schedule: Schedule, board: Board) -> dict[str, str]:
    """Return the constants that are copied to RAM because an NPU or a unit does not reach the image, and the bank."""
    npu = board.chip.npu
    found = {unit.executor: unit.memory for unit in units_of(board.chip)}
    if npu is not None and npu.constants != board.chip.code:
        found[NPU] = npu.constants
    own = ((found.get(step.executor), o) for step in schedule.steps for o in step.operands)
    return {o.storage: bank for bank, o in own if bank is not None and o.constant and not o.buffer}
