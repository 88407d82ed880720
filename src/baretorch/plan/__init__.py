"""Plan a Graph for a Board: a kernel and an executor per node, a place for every byte, and a check of the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from baretorch.errors import CompileError, see_fit
from baretorch.ir.graph import Graph, State
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.input_rows import pulled
from baretorch.options import DEFAULT, Buffers, Input, Options, Units, Weights
from baretorch.plan.bands.choose import banded
from baretorch.plan.check.plan import check_plan
from baretorch.plan.cluster.choose_channel_parts import with_sums
from baretorch.plan.cluster.choose_tiles import Place, Planned, Workshop, without_copies
from baretorch.plan.cores import cluster, pair, shared, with_meetings
from baretorch.plan.guards import guarded
from baretorch.plan.memory.banks import Wishes, place_in_banks, room, wishes
from baretorch.plan.memory.lifetimes import find_overlaps, lifetimes, of_others, turned, with_the_caller
from baretorch.plan.memory.offsets import lower_bound
from baretorch.plan.memory.storage import views
from baretorch.plan.order import ordered
from baretorch.plan.schedule import Executor, Operand, Schedule, Step, View, one_by_one
from baretorch.plan.select import Constants, make_steps, operand_of
from baretorch.plan.state import renewed, settled
from baretorch.plan.types import Bank, Buffer, Layout, Overlap, Plan, StateBuffer, Tiles
from baretorch.targets.types import Board, Chip
from baretorch.units import Unit, units_of

ONE_CORE = "leave out --cores: a layer that two cores share cannot have its output where its input dies"


SPARE = 512  # bytes of a scratchpad that are left for the program's own data


def make_plan(graph: Graph, board: Board, options: Options = DEFAULT) -> Plan:
    """Plan the graph for the board; CompileError if its memory cannot hold it. Where whole tensors are too large for
    it, or for what the user allows, a part of the model runs in bands."""
    plan = _in_parts(_with_units(graph, board, options), board, options)
    _need_flash(stored_by_name(plan), board)
    limit = _limit(plan, board, options)
    rows = options.input is Input.ROWS
    if rows or plan.arena > limit:
        fits = partial(_fits, board=board, options=options)
        smaller = banded(plan, lambda g: _whole(g, board, options), limit, rows, fits)
        _need_image(smaller, options)
        plan = smaller if rows else min(plan, smaller, key=lambda p: p.arena)
        _need_ram(plan, options)
    _need_room(plan, board, options)
    _need_arrays(plan, board)
    return plan


def _in_parts(plan: Plan, board: Board, options: Options) -> Plan:
    """On a cluster with a DMA engine: layers too large for its scratchpad take their input channels in parts."""
    cluster = board.chip.cluster
    if cluster is None or cluster.dma is None or not _by_dma(options):
        return plan
    own = room(board.chip, cluster.scratchpad, options.used_cores) - SPARE
    plan_of = partial(_with_units, board=board, options=options)
    found = with_sums(plan, plan_of, own, partial(_over, board=board, options=options))
    return replace(found, no_room=found.no_room | plan.no_room)


def _by_dma(options: Options) -> bool:
    """Whether constants may come by DMA while a cluster runs."""
    return options.weights in (None, Weights.AUTO, Weights.STREAM) and not options.app


def _over(plan: Plan, board: Board, options: Options) -> int:
    """How many bytes of its banks the board does not have."""
    chip, copied = board.chip, plan.layout.copied
    return sum(max(0, b.size - room(chip, b.name, options.used_cores) + copied(b.name)) for b in plan.layout.banks)


def _fits(plan: Plan, board: Board, options: Options) -> bool:
    return not _over(plan, board, options) and (options.ram is None or plan.arena <= options.ram)


def _limit(plan: Plan, board: Board, options: Options) -> int:
    """How large the arena may be: as the user says, and as the board has room. It need not be smaller than it is."""
    short = sum(max(0, bank.size - room(board.chip, bank.name, options.used_cores)) for bank in plan.layout.banks)
    return min(options.ram if options.ram is not None else plan.arena, plan.arena - short)


def _need_image(plan: Plan, options: Options) -> None:
    """Rows were asked for, so some must be pulled."""
    fits = options.ram is None or plan.arena <= options.ram  # else that is the error
    if options.input is Input.ROWS and fits and plan.bands is None:
        graph = plan.graph
        raise CompileError(
            "--input rows: the input is not an image that convolutions or pools read",
            have=", ".join(repr(graph[name]) for name in graph.inputs),
            need="one input of shape [1, H, W, C] in memory, read by convolutions and pools",
            try_="x.to(memory_format=torch.channels_last) for an image of shape [1, C, H, W] in inputs()",
        )


def _need_ram(plan: Plan, options: Options) -> None:
    if options.ram is not None and plan.arena > options.ram:
        raise CompileError(
            f"the model does not fit {options.ram:,} bytes of RAM: it needs {plan.arena - options.ram:,} more",
            at=peak_layers(plan),
            have=f"arena {plan.arena:,} bytes" + (f", with {plan.bands}" if plan.bands else ""),
            need=f"at most {options.ram:,} bytes, as --ram says",
            try_=ONE_CORE if options.shared_cores > 1 else None,
        )


def _with_units(graph: Graph, board: Board, options: Options) -> Plan:
    """The plan of a graph as it is, in which units compute what they take, as far as there is room for its constants;
    those with the most bytes are first to be left to the cores."""
    units = units_of(board.chip) if options.units is Units.AUTO else ()
    left: set[str] = set()
    while True:
        plan = _whole(graph, board, options, lambda call: () if call.y.name in left else units)
        theirs = [step for step in plan.steps if step.kernel.unit]
        if not theirs or _fits(plan, board, options):
            return replace(plan, no_room=frozenset(left))
        largest = max(theirs, key=lambda step: sum(o.size for o in (*step.uses, *_resident(step))))
        left.add(largest.call.y.name)


def _resident(step: Step) -> list[Operand]:
    """The constants that must be there from the start."""
    return [o for o in step.operands if o.constant and not o.buffer]


def _whole(
    graph: Graph, board: Board, options: Options, units: Callable[[Call[Any]], Sequence[Unit]] = lambda call: ()
) -> Plan:
    """The plan of a graph as it is."""
    found = guarded(settled(graph))
    graph, storage = found.graph, views(found.graph, found.needs)
    apart = board.chip.cpu.flash_apart
    constants = Constants(apart)
    steps = make_steps(graph, board.chip.cpu, storage, constants, found.needs, units)
    if board.chip.cluster is not None:  # tiles need not be searched for what cannot be stored
        _need_flash({c.name: c.data.nbytes for c in constants.known.values()}, board)
    wished = wishes(graph, storage, board, options.place, of_others(steps))
    steps, storage = renewed(graph, steps, storage, board.chip.cpu, constants, wished.of)
    lent = with_the_caller(graph, steps, storage) if options.buffers is Buffers.CALLER else frozenset()
    absent = lent | pulled(graph)

    def asked(
        schedule: Schedule,
        more: Sequence[Buffer] = (),
        taken: int = 0,
        far: Mapping[str, str] | None = None,
        anywhere: bool = False,
    ) -> _Asked:
        own = replace(wished, of={**wished.of, **(far or {})})
        return _asked(graph, schedule, storage, board, own, absent, options.used_cores, more, taken, anywhere)

    def placed(schedule: Schedule, taken: int = 0) -> Planned:
        return asked(schedule, taken=taken).placed()

    def fitted(
        schedule: Schedule, more: Sequence[Buffer], taken: int, far: Mapping[str, str], anywhere: bool
    ) -> Planned | None:
        own = asked(schedule, more, taken, far, anywhere)
        return own.placed() if own.may_fit() else None

    best = placed(one_by_one(steps))
    better = ordered(steps, best.buffers)
    if any(a is not b for a, b in zip(better, steps, strict=True)):
        best = min(best, placed(one_by_one(better)), key=_cost)
    tiles = None
    if board.chip.cluster is not None:
        kept = {storage[name].buffer for name in graph.outputs} | {s.name for s in graph.state}
        best, constants, tiles = _on_cluster(best, constants, storage, kept, placed, fitted, board, options)
    elif options.shared_cores > 1:
        constants = Constants(apart)
        best = placed(shared(best.schedule.steps, storage, constants, pair()))

    def operand(name: str) -> Operand:
        view = storage[name]
        data = graph[view.buffer].data
        if data is None:
            return operand_of(graph[name], storage)
        return replace(constants.plain(view.buffer, data), tensor=name, offset=view.offset, size=graph[name].bytes)

    def initial(state: State) -> str | None:
        return constants.plain(f"{state.name}.initial", state.initial).storage if state.initial.any() else None

    inputs = tuple(map(operand, graph.inputs))
    outputs = tuple(map(operand, graph.outputs))
    state = tuple(StateBuffer(operand(s.name), initial(s)) for s in graph.state)
    layout = Layout(
        tuple(best.placed.buffers),
        tuple(constants.known.values()),
        best.placed.banks,
        best.lower_bound,
        best.placed.optimal,
        lent,
        frozenset(pulled(graph)),
        _copies(best.schedule.steps, board) | (dict.fromkeys(constants.as_they_are, board.chip.data) if apart else {}),
        apart,
    )
    beside = options.shared_cores > 1 or any(step.kernel.unit for step in best.schedule.steps)
    schedule = turned(best.schedule, layout.buffers)
    schedule = with_meetings(schedule, layout) if beside else schedule
    plan = Plan(graph, board.chip.cpu.name, schedule, layout, inputs, outputs, state)
    return check_plan(replace(plan, tiles=tiles))


def _on_cluster(
    plain: Planned,
    constants: Constants,
    storage: Mapping[str, View],
    kept: Collection[str],
    placed: Callable[[Schedule, int], Planned],
    fitted: Place,
    board: Board,
    options: Options,
) -> tuple[Planned, Constants, Tiles | None]:
    """What is planned for one core on a cluster's cores. If the constants do not fit its scratchpad beside the arena,
    they come by DMA, in tiles with which the run takes least."""
    chip, team = board.chip, cluster(options.shared_cores)
    assert chip.cluster is not None
    scratchpad, steps = chip.cluster.scratchpad, plain.schedule.steps
    own = room(chip, scratchpad, options.used_cores) - SPARE
    for schedule, constants in without_copies(steps, storage, kept, team):
        plain = placed(schedule, SPARE)
        if _cost(plain) + constants.bytes <= own:
            break
    if chip.cluster.dma is None or not _by_dma(options) or _cost(plain) + constants.bytes <= own:
        return plain, constants, None
    found = Workshop(steps, storage, kept, team, chip.cluster, own, SPARE, fitted).best()
    return (found.planned, found.constants, found.tiles) if found else (plain, constants, None)


def _copies(steps: Sequence[Step], board: Board) -> dict[str, str]:
    """The constants that are copied to RAM because an NPU or a unit does not reach the image, and the bank."""
    npu = board.chip.npu
    found = {unit.name: unit.memory for unit in units_of(board.chip)}
    if npu is not None and npu.constants != board.chip.code:
        found[Executor.NPU.name.lower()] = npu.constants
    own = ((found.get(step.executor.name.lower()), o) for step in steps for o in step.operands)
    return {o.storage: bank for bank, o in own if bank is not None and o.constant and not o.buffer}


@dataclass(frozen=True)
class _Asked:
    """Buffers of a schedule that want a place."""

    schedule: Schedule
    buffers: list[Buffer]
    overlaps: list[Overlap]
    state: frozenset[str]
    chip: Chip
    wishes: Wishes
    cores: int
    taken: int

    def may_fit(self) -> bool:
        """Whether those that must lie in the main bank have room there, as far as that is plain."""
        of, main = self.wishes.of, self.wishes.main
        stay = [b for b in self.buffers if of.get(b.name, "" if b.name not in self.state else main) == main]
        names = {b.name for b in stay}
        least = lower_bound(stay, [o for o in self.overlaps if o.reads in names and o.writes in names])
        return least + self.taken <= room(self.chip, main, self.cores)

    def placed(self) -> Planned:
        buffers, overlaps = self.buffers, self.overlaps
        placed = place_in_banks(buffers, overlaps, self.state, self.chip, self.wishes, self.cores, self.taken)
        return Planned(self.schedule, buffers, placed, lower_bound(buffers, overlaps))


def _asked(
    graph: Graph,
    schedule: Schedule,
    storage: dict[str, View],
    board: Board,
    wished: Wishes,
    absent: Collection[str],
    cores: int,
    more: Sequence[Buffer],
    taken: int,
    anywhere: bool,
) -> _Asked:
    buffers = [*lifetimes(graph, schedule, storage, absent), *more]
    if board.chip.cluster is not None:  # scratch and copies stay where all cores are quick, the rest where units reach
        near = [b.name for b in more]
        near += [step.scratch.name for step in schedule.steps if step.scratch]
        theirs = [step for step in schedule.steps if step.kernel.unit and not anywhere]
        near += [o.storage for step in theirs for o in step.uses if not o.buffer]
        wished = replace(wished, of={**dict.fromkeys(near, wished.main), **wished.of})
    state = frozenset(s.name for s in graph.state)
    return _Asked(schedule, buffers, find_overlaps(schedule, buffers), state, board.chip, wished, cores, taken)


def _cost(found: Planned) -> int:
    return sum(bank.size for bank in found.placed.banks)


def stored_by_name(plan: Plan) -> Counter[str]:
    """The bytes of constants by their names, those of a cluster's tiles by the names of the layers."""
    layers = {o.storage: step.layer for step in plan.steps for o in step.operands if o.constant and o.buffer}
    found = Counter[str]()
    for c in plan.layout.constants:
        found[layers.get(c.name, c.name)] += c.data.nbytes
    return found


def _need_flash(stored: Mapping[str, int], board: Board) -> None:
    """Refuse what cannot fit before anything is built; the linker has the last word on code."""
    chip = board.chip
    flash = chip.memory(chip.code)
    weights = sum(stored.values())
    reach = min(flash.size, chip.cpu.flash_reach or flash.size)
    if weights > reach:
        largest = sorted(stored.items(), key=lambda one: -one[1])[:3]
        raise CompileError(
            f"the weights do not fit {board.name}: {flash.name} is {weights - reach:,} bytes too small",
            have=[f"weights {weights:,} bytes", *(f"{name} {size:,} bytes" for name, size in largest)],
            need=f"at most {reach:,} bytes of {flash.name}"
            + (f", as far as {chip.cpu.name} reads constants" if reach < flash.size else ""),
            try_=see_fit(board.name),
        )


def _need_room(plan: Plan, board: Board, options: Options) -> None:
    chip, cores = board.chip, options.used_cores
    for bank in plan.layout.banks:
        copied = plan.layout.copied(bank.name)
        most = room(chip, bank.name, cores) - copied
        if bank.size > most:
            if chip.cpu.flash_apart and most < 0:
                raise _constants_in_ram(plan, board, bank, copied)
            stack = f", beside {chip.stacks(cores):,} for the stack" if bank.name == chip.data else ""
            raise CompileError(
                f"the model does not fit {board.name}: {bank.name} is {bank.size - most:,} bytes too small",
                at=peak_layers(plan),
                have=f"arena {plan.arena:,} bytes" + (f", with {plan.bands}" if plan.bands else ""),
                need=f"at most {most:,} bytes of {bank.name}{stack}",
                try_=ONE_CORE if options.shared_cores > 1 else see_fit(board.name),
            )


def _constants_in_ram(plan: Plan, board: Board, bank: Bank, copied: int) -> CompileError:
    """Some kernels take constants where others give them activations: those are in RAM."""
    chip = board.chip
    more = copied + bank.size - room(chip, bank.name)
    held = sorted((c for c in plan.layout.constants if c.name in plan.layout.copies), key=lambda c: -c.data.nbytes)
    return CompileError(
        f"the model does not fit {board.name}: {bank.name} is {more:,} bytes too small",
        have=[
            f"{copied:,} bytes of constants in {bank.name}",
            *(f"{c.name} {c.data.nbytes:,} bytes" for c in held[:3]),
        ],
        need=f"layers whose constants {chip.cpu.name} can leave in flash, as most of int8 do",
        try_=["--int8", see_fit(board.name)],
    )


def _need_arrays(plan: Plan, board: Board) -> None:
    """A compiler with pointers of 16 bits makes no large arrays."""
    most = board.chip.cpu.largest_array
    arrays = [("arena", plan.arena), *((c.name, c.data.nbytes) for c in plan.layout.constants)]
    large = [f"{name} {size:,} bytes" for name, size in arrays if most is not None and size > most]
    if large:
        raise CompileError(
            f"the model does not fit {board.name}: the largest array for {board.chip.cpu.name} is too small",
            have=large,
            need=f"at most {most:,} bytes in one array",
            try_=see_fit(board.name),
        )


def peak_layers(plan: Plan) -> list[str]:
    """The step with the most live bytes, and the tensors that are alive there, largest first."""
    if not plan.steps:
        return []
    best = max(range(len(plan.phases)), key=plan.live_bytes)
    node = plan.phases[best].main.nodes[0]
    origin = plan.graph[node.outputs[0]].origin
    alive = sorted((b for b in plan.layout.buffers if b.first <= best <= b.last), key=lambda b: -b.size)
    tensors = ", ".join(f"{b.name} {b.size:,}" for b in alive[:4])
    return [f"{str(origin) or node.outputs[0]}: {tensors}"]


__all__ = ["check_plan", "make_plan", "peak_layers", "stored_by_name"]
