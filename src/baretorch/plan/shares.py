"""Share the work of steps between several cores.

A layer whose kernel can make parts of its output is cut, one part per core and of about the same work. Small layers,
and those that cannot be cut, stay on core 0. Cores meet before a phase in which one would read what another has
written, or write what another still reads. Where each only continues with its own results, as a 1x1 convolution after
another does row by row, they need not meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from baretorch.ir.graph import Tensor
from baretorch.ops.helpers.cut import Part, part_within
from baretorch.ops.helpers.executor import Executor
from baretorch.ops.helpers.kernel import Call, Kernel, Split
from baretorch.plan.constants import Constants
from baretorch.plan.problem import Problem, Solution, Strategy, place_in_best_order
from baretorch.plan.schedule import BackgroundCopy, Phase, Schedule, Step, View
from baretorch.plan.select import make_step
from baretorch.plan.types import InArena, Layout, WithCaller

LEAST = 3000  # operations of a layer that two cores share: a meeting takes about 50 instructions of each
PER_OUTPUT = 6  # operations of an output besides its products
PER_INPUT = 2  # operations of an input: both cores read all of it where they share the output channels


@dataclass(frozen=True)
class Team(ABC):
    """Cores that share work. A layer must take `least` operations to be worth a meeting."""

    count: int
    least: int

    @property
    def cores(self) -> tuple[Executor, ...]:
        return tuple(Executor("core", i) for i in range(self.count))

    @abstractmethod
    def work(self, call: Call[Any], kernel: Kernel[Any]) -> float:
        """Estimate how many operations a call takes."""

    def as_cut(self, call: Call[Any]) -> Call[Any]:
        """Return the call, or one of the same meaning that has more places to cut."""
        return call

    def price(self, kernel: Kernel[Any], parts: Sequence[Part]) -> int:
        """Return what decides between ways to cut that take the same time."""
        return 0

    def may_cut(self, step: Step, parts: Sequence[Part]) -> bool:
        """Return whether the parts are right where the operands of the step are."""
        return not shares_memory(step)


def shares_memory(step: Step) -> list[int]:
    """Return the numbers of the activations that are in the memory of the output."""
    (y,) = step.writes
    return [i for i, x in enumerate(step.reads) if x.storage == y.storage]


def whole_part(call: Call[Any]) -> Part:
    """Return a call as the only part of itself."""
    return Part(call, (0,) * sum(t.data is None for t in call.inputs), 0)


def best_cut(step: Step, team: Team) -> tuple[Part, ...] | None:
    """Return the parts of a step that take the least time; None if it stays on one core."""
    call, kernel = team.as_cut(step.call), step.kernel
    if kernel.unit or team.count == 1:
        return None
    if step.guards or len(call.outputs) != 1 or team.work(call, kernel) < team.least:
        return None

    def longest(parts: Sequence[Part]) -> float:
        return max(team.work(part.call, kernel) for part in parts)

    cuts = [parts for parts in _cuts(call, kernel.splits(call), team.count) if team.may_cut(step, parts)]
    best = min(cuts, key=lambda parts: (longest(parts), team.price(kernel, parts)), default=None)
    return best if best is not None and team.work(call, kernel) - longest(best) >= team.least / 4 else None


def make_shares(
    step: Step, parts: Sequence[Part] | None, storage: Mapping[str, View], constants: Constants, team: Team
) -> Iterator[Step]:
    """Yield a step for each core that computes a part, or for core 0 alone, with `constants` packed for it."""
    if parts is None:
        alone = make_step(step.nodes[0], step.call, step.kernel, constants, storage)
        given = iter(o for o in step.operands if not o.constant)
        same = tuple(o if o.constant else next(given) for o in alone.operands)
        yield replace(alone, operands=same, guards=step.guards, scratch=step.scratch)
        return
    for executor, part in zip(team.cores, parts, strict=False):
        made = make_part(step, part, executor.name, storage, constants)
        operands = list(made.operands)
        operands[-1] = replace(operands[-1], size=_extent(part.call, part.call.y))
        if part.wide or step.kernel.renews:
            wide = step.kernel.renews[0][0] if step.kernel.renews else 0
            operands[wide] = replace(operands[wide], size=_extent(part.call, part.call.inputs[wide]))
        yield replace(made, operands=tuple(operands), executor=executor)


def make_part(step: Step, part: Part, name: str, storage: Mapping[str, View], constants: Constants) -> Step:
    """Return a part of a step, with activations at the part's offsets in the step's, and scratch called `name`."""
    made = make_step(step.nodes[0], part.call, step.kernel, constants, storage)
    given = iter(zip((o for o in step.operands if not o.constant), (*part.offsets, part.at), strict=True))
    operands = []
    for o in made.operands:
        if not o.constant:
            whole, offset = next(given)
            o = replace(whole, offset=whole.offset + offset, size=o.size)
        operands.append(o)
    stem = step.scratch.name if step.scratch else f"{step.call.y.name}.scratch"  # the step may be a part itself
    scratch = made.scratch and replace(made.scratch, name=f"{stem}.{name}")
    return replace(made, operands=tuple(operands), scratch=scratch)


def _extent(call: Call[Any], t: Tensor) -> int:
    """Return the bytes from the first to the last that a call touches of a tensor with the output's pitch."""
    rows = t.count // t.shape[-1]
    return ((rows - 1) * call.pitch + t.shape[-1]) * t.dtype.size if call.pitch else t.bytes


def _cuts(call: Call[Any], splits: Sequence[Split], count: int) -> Iterator[tuple[Part, ...]]:
    """Yield ways to cut a call into parts of about the same size, at most one per core: along one axis, or along one
    and each part along another."""
    for split in splits:
        yield from _along(whole_part(call), split, count)
    for first, second in pairwise(splits):
        for rows in (n for n in range(2, count) if count % n == 0):
            for bands in _along(whole_part(call), first, rows):
                shares = [next(_along(band, second, count // rows), ()) for band in bands]
                if all(shares):
                    yield tuple(part for share in shares for part in share)


def _along(of: Part, split: Split, count: int) -> Iterator[tuple[Part, ...]]:
    size = of.call.y.shape[split.axis]
    for places in _evenly(split, size, count):
        ends = pairwise((0, *places, size))
        parts = [part_within(of, split.axis, start, stop, split.wide) for start, stop in ends]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts) > 1:
            yield tuple(known)


def _evenly(split: Split, size: int, count: int) -> list[tuple[int, ...]]:
    """Return where to cut: two parts next to the middle; more so that the largest is as small as it can be, with the
    larger ones first, or last."""
    units = -(-size // split.step)
    if count == 2:
        middle = sorted(range(1, units), key=lambda unit: abs(2 * unit * split.step - size))
        return [(unit * split.step,) for unit in middle[:2]]
    most = min(count, units)
    rounded = [[-(-units * i // most) for i in range(1, most)], [units * i // most for i in range(1, most)]]
    return list(dict.fromkeys(tuple(unit * split.step for unit in each) for each in rounded))


def with_meetings(schedule: Schedule, layout: Layout) -> Schedule:
    """Return the schedule with as few meetings as its bytes allow."""
    phases: list[Phase] = []
    open_: list[tuple[Executor, list[_Bytes]]] = []  # the bytes that each has used since the last meeting
    for phase in schedule.phases:
        touched = [(step.executor, list(_bytes_of_step(step, layout))) for step in phase.steps]
        touched += [(copy.executor, list(_bytes_of_copy(copy, layout))) for copy in phase.copies]
        meet = any(a != b and _clash(x, y) for a, x in touched for b, y in open_)
        meet = meet or any(step.awaits for step in phase.steps)  # core 0 waits for all
        phases.append(replace(phase, meet=meet))
        open_ = touched if meet else open_ + touched
    return replace(schedule, phases=tuple(phases))


_Bytes: TypeAlias = tuple[str, int, int, bool]  # memory, first, after the last, written


def _clash(some: Sequence[_Bytes], others: Sequence[_Bytes]) -> bool:
    pairs = ((a, b) for a in some for b in others if a[0] == b[0] and (a[3] or b[3]))
    return any(a[1] < b[2] and b[1] < a[2] for a, b in pairs)


def _bytes_of_copy(copy: BackgroundCopy, layout: Layout) -> Iterator[_Bytes]:
    for o in (copy.source, copy.target):
        place = layout.place(o)
        if isinstance(place, InArena):
            yield place.bank, place.offset, place.offset + o.size, o is copy.target


def _bytes_of_step(step: Step, layout: Layout) -> Iterator[_Bytes]:
    brought = tuple(o for o in step.operands if o.buffer)
    for o, writes in (*((o, False) for o in (*brought, *step.uses)), *((o, True) for o in step.writes)):
        match layout.place(o):
            case InArena(bank, offset):
                yield bank, offset, offset + o.size, writes
            case WithCaller(buffer, offset):
                yield f"the caller's {buffer}", offset, offset + o.size, writes
            case _:
                pass
    if step.scratch:
        place = layout.scratch(step.scratch)
        yield place.bank, place.offset, place.offset + step.scratch.size, True


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
